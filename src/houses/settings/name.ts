/** How the id of a house, and the name of a game or market, is written: the source of a regular expression. */
export const NAME = "[a-z0-9][a-z0-9_-]{0,63}";
