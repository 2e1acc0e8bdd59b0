-- Read by the command lines mariadb and mysql; what they print must be cli.expected.
SELECT DATABASE() IS NOT NULL AS has_schema;
DROP TABLE IF EXISTS cli_items;
CREATE TABLE cli_items(id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(60) CHARACTER SET utf8mb4, price DECIMAL(8,2));
INSERT INTO cli_items(name, price) VALUES ('naïve 漢字 🐬', 1.50), ('it''s \\ "quoted"', NULL), ('', 0);
SELECT ROW_COUNT() AS changed, LAST_INSERT_ID() AS first_id;
BEGIN;
SELECT * FROM cli_items ORDER BY id;
UPDATE cli_items SET price = price + 1 WHERE id = 1;
SELECT ROW_COUNT() AS changed;
SAVEPOINT s;
DELETE FROM cli_items;
SELECT COUNT(*) AS none FROM cli_items;
ROLLBACK TO SAVEPOINT s;
SELECT price FROM cli_items WHERE id = 1 FOR UPDATE;
ROLLBACK;
BEGIN; SELECT price FROM cli_items WHERE id = 1; COMMIT;
SET @a = 5, @b = 6;
SELECT @a * @b AS product;
SET SESSION sql_mode = 'ANSI_QUOTES';
SELECT "name" IS NULL AS column_in_double_quotes FROM (SELECT 1 AS "name") AS t;
SET SESSION sql_mode = DEFAULT;
CREATE TEMPORARY TABLE cli_temporary AS SELECT 1 AS a UNION ALL SELECT 2;
SELECT SUM(a) AS total FROM cli_temporary;
SELECT CAST('12x' AS SIGNED) AS twelve;
SHOW COUNT(*) WARNINGS;
PREPARE cli_statement FROM 'SELECT ? + ? AS total';
EXECUTE cli_statement USING @a, @b;
DEALLOCATE PREPARE cli_statement;
DROP PROCEDURE IF EXISTS cli_loop;
DELIMITER //
CREATE PROCEDURE cli_loop(IN n INT)
BEGIN
  -- Several results, and a statement in between that gives none.
  SELECT n AS first_result;
  SET @seen = n;
  SELECT @seen * 2 AS second_result;
END//
DELIMITER ;
CALL cli_loop(21);
DROP PROCEDURE cli_loop;
SELECT GET_LOCK('cli_lock', 5) AS got_lock;
SELECT RELEASE_LOCK('cli_lock') AS released;
SELECT no_such_column;
SELECT 'after an error' AS goes_on;
LOCK TABLES cli_items WRITE;
SELECT COUNT(*) AS locked_count FROM cli_items;
UNLOCK TABLES;
DROP TABLE cli_items;
