-- The oldest schema that a program has to know to use this database. Migrations that only add leave it as it is.
CREATE TABLE readable_from (version INTEGER NOT NULL);
INSERT INTO readable_from VALUES (35);
