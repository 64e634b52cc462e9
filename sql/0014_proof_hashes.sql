-- Whose hash is this? Asked of every answer of a table whose ids tell no place (a hash that another round has proves
-- nothing), and of every line of an import. A hash index has some 30 bytes a row, where the text itself would take 100.
create index rounds_by_proof_hash on rounds using hash (proof_hash) where proof_hash is not null;
