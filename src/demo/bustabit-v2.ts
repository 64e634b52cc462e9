/**
 * bustabit's second hash chain, games 1 to 5,728,987 of 10,000,000: public facts, played again by the demo house.
 *
 * The hash of game n - 1 is the SHA-256 of the hash of game n, so the newest known hash gives every earlier game down
 * to the terminating hash, which the operator published before the first game. Rule and salt: bustabit/verifier,
 * src/constants.ts. The other anchors only save walking; a test walks from each to the next and to the commitment.
 */

/** The salt, used as text: the hash of Bitcoin block 505,750, mined after the commitment was published. */
export const SALT = "0000000000000000004d6ec16dafe9d8370958664c1dc422f452892264c59526";

/** The published commitment: what game 1's hash leads to. */
export const TERMINATING_HASH = "86728f5fc3bd99db94d3cdaf105d67788194e9701bf95d049ad0e1ee3d004277";

/** Games whose hash is known, newest first; with the two low ones a new demo house starts immediately. */
export const ANCHORS: readonly { id: number; hash: string }[] = [
  { id: 5_728_987, hash: "3ba12a9bc2deba608d678a2a449ca7874c4df22588eb593e5150b6f3caf9f81d" },
  { id: 5_500_000, hash: "a3d8a6ee0a53439c331826bec83d2511c8656b7c89c964c0ef7aa373eb1dcf77" },
  { id: 5_250_000, hash: "d4784f07c700bdea773d99b200404769b2433ebde4e12deeb87fdd87d3da9d54" },
  { id: 5_000_000, hash: "0882861d3f8173cf38ef2e9ee77345529dfe57cf84f7fd8d9b7aac3b056f66f2" },
  { id: 4_750_000, hash: "56c3ed64eea70a81d3494b7dbd80c7d9b242dfe41eb34f0fd6a4a5f7b178de03" },
  { id: 4_500_000, hash: "8dfefa9bb9813842bc8261e1228bd0a36f9ddbcf08d445383439475ae36b8a52" },
  { id: 4_250_000, hash: "da7e28861ea258cb7164004b659e9e052e64c787ef7e99d57d07ae7080fc5373" },
  { id: 4_000_000, hash: "4a110c6536e5073d8ee92288f0ab81529b7d5b5bc0e32eb4f70da5b22b2cf06a" },
  { id: 3_750_000, hash: "6a762891f5312806026696ce5193c9c78dc5a5b5951c5fbc63868a13fde4ff5d" },
  { id: 3_500_000, hash: "6c7bd810d589c300a717de9efcb34835b35f4b071e2670d31808879a681e2265" },
  { id: 3_250_000, hash: "6afa59bc26e5b9530f1f4c0baa20192a298ea9b442ad107928f13f1ddf69a445" },
  { id: 3_000_000, hash: "21a7713b2ca0497744c8727ee76c05ae2eea4e77eae57aba98686df9417e52e5" },
  { id: 2_750_000, hash: "2c82a8c3ccd926fe08b55e731a787b7050b30ea8bef1dc1e1e9e9092d5c773e2" },
  { id: 2_500_000, hash: "c5dfba14206dd43cdd0297367008e76849fe51016b88db1917c8c7108f095e9a" },
  { id: 2_250_000, hash: "265caff48dbe0f1ecf93aed8b9e26cf016b4dd244e3d847cc39e4b8529286391" },
  { id: 2_000_000, hash: "f06907adf1406fd182fa7373b26d8163845201f3eb9ec3dc4a61636b4a6e549c" },
  { id: 1_750_000, hash: "e17e364a152fba45c62a7b34e8654ca202b54608f30f3ee551385b7d40d47138" },
  { id: 1_500_000, hash: "fc4826accc567d99ab4657b34bad3dd4c123b61956223cc1b6d017f07ad02187" },
  { id: 1_250_000, hash: "2b97ca9e55d84c1003682aa59525a523b0806ac97ede7ad9be8d082339b53a22" },
  { id: 1_000_000, hash: "ff78f09136b961eb2e56c8a09a3cc713f62581099adee6a1488951de06a90249" },
  { id: 750_000, hash: "d482c422cce40a6bc78606aa37165b6263a4ca2392cf84e875888412f91fb0ba" },
  { id: 500_000, hash: "766c4ad413b78491d5e18c06743f9b55f56be6084a3deccaf4ca479c6371f390" },
  { id: 250_000, hash: "637e081718a78318a6836f195b8a5fcc60ce38a90947800db37aea5b46f9f493" },
  { id: 50_000, hash: "3acd904dad92828b9a6880e9e39f73207cf7d1fe13db4cd4fc389bad9e5e090a" },
  { id: 10_000, hash: "e5aaae86c82bc2867301e9fb764a22c73f3e7ec0e235d3720373b1ccc640816b" },
];

/** The newest game whose hash is known (early 2022); later ones cannot be computed by anyone but the operator. */
export const LAST_GAME = 5_728_987;
