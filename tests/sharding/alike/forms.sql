# Names that are not what they look like
= SELECT k FROM n AS m WHERE m.k = 1
= SELECT n.k FROM m AS n WHERE n.k = 1
= SELECT m.k, n.k FROM n AS m JOIN m AS n ON m.k = n.k WHERE m.k = 1
= SELECT n.k FROM (SELECT 1 AS k) AS n WHERE n.k = 1
= SELECT n.k FROM (SELECT 2 AS k) n JOIN m ON m.k = n.k
= SELECT n.k FROM (SELECT 2 AS k) n JOIN m ON m.k = n.k WHERE m.k = 2
! SELECT n.k FROM (SELECT k FROM n) n WHERE n.k = 1
= SELECT n.k FROM (SELECT k FROM n WHERE k = 1) n WHERE n.k = 1
= SELECT n.k FROM (SELECT k + 1 AS k FROM n WHERE k = 1) n WHERE n.k = 2
! SELECT x.k FROM (SELECT k FROM n WHERE k = 1) x JOIN n ON n.k = x.k
= SELECT x.k FROM (SELECT k FROM n WHERE k = 1) x JOIN n ON n.k = x.k WHERE n.k = 1
! SELECT k FROM (SELECT k FROM p) x JOIN m USING (k) WHERE k = 1
= SELECT k FROM (SELECT 3 AS k) x NATURAL JOIN m WHERE k = 3
= SELECT k FROM (SELECT 3 AS j) x, m WHERE k = 3
! SELECT k FROM (SELECT 3 AS k) x WHERE k = 3 AND EXISTS (SELECT 1 FROM m WHERE m.k = x.k)
! SELECT v FROM p WHERE k = 2 AND EXISTS (SELECT 1 FROM n WHERE n.k = 2)
! SELECT v FROM p WHERE EXISTS (SELECT 1 FROM n WHERE n.k = p.k AND n.k = 2)
! SELECT v FROM p WHERE p.k = 2 AND EXISTS (SELECT 1 FROM n WHERE n.k = p.k)
! WITH n AS (SELECT 1 AS k) SELECT k FROM n
! WITH n AS (SELECT k FROM n WHERE k = 1) SELECT k FROM n
= WITH x AS (SELECT k FROM n WHERE k = 1) SELECT k FROM x
! WITH x AS (SELECT k FROM n) SELECT k FROM x WHERE k = 1
= WITH p AS (SELECT k, v FROM n WHERE k = 1) SELECT * FROM p
= WITH g AS (SELECT k, v FROM n WHERE k = 2) SELECT n.k FROM g JOIN n ON g.k = n.k WHERE n.k = 2
= WITH x AS (SELECT 2 AS k) SELECT n.k FROM x JOIN n ON x.k = n.k WHERE n.k = 2
! WITH x AS (WITH m AS (SELECT 5 AS k) SELECT k FROM m) SELECT m.k FROM m JOIN x WHERE m.k = 1
! WITH x(k) AS (SELECT 2), y AS (SELECT k FROM n WHERE k = 1) SELECT * FROM x, y
= WITH RECURSIVE x AS (SELECT 1 AS k UNION ALL SELECT k + 1 FROM x WHERE k < 3) SELECT x.k, n.v FROM x JOIN n ON n.k = 1
= WITH RECURSIVE x AS (SELECT k FROM n WHERE k = 1 UNION ALL SELECT x.k + 1 FROM x JOIN n ON n.k = 1 WHERE x.k < 3) SELECT k FROM x
= SELECT {db}.n.k FROM n WHERE {db}.n.k = 1
= SELECT {db}.n.k FROM {db}.n WHERE n.k = 1
= SELECT `{db}` . `n` . `k` FROM `{db}` . `n` WHERE `n` . k = 1
= SELECT {db}.n.* FROM n WHERE k IN (1, 2)
= SELECT n.*, m.v FROM n JOIN {db}.m ON {db}.m.k = n.k WHERE n.k IN (1, 2, 3)
= SELECT N.K FROM n N WHERE N.k = 1
= SELECT K FROM n WHERE `K` = 1
= SELECT n . k FROM n WHERE n/**/./**/k = 1
! SELECT .n.k FROM n WHERE k = 1
! SELECT k FROM .n WHERE k = 1
! SELECT i.k FROM .i WHERE i.k = 1
! SELECT i.k FROM p, .i WHERE i.k = 1
= SELECT i.k FROM (SELECT 3 AS j) x, i WHERE i.k = 1
! SELECT i.k FROM p USE INDEX FOR ORDER BY (), i WHERE i.k = 1
! SELECT i.k FROM p, (p AS p2, i) WHERE i.k = 5
= SELECT i.k FROM JSON_TABLE("[1]", "$[*]" COLUMNS (j INT PATH "$")) x, i WHERE i.k = 1
= SELECT i.k FROM (VALUES ROW(1)) x, i WHERE i.k = 1
! SELECT k FROM n n, m n WHERE n.k = 1
= SELECT a.k, b.k FROM n a, n b WHERE a.k = 1 AND b.k = 1
! SELECT a.k, b.k FROM n a, n b WHERE a.k = 1 AND b.k = 2
= SELECT a.k, b.k FROM n a, n b WHERE a.k = 1 AND b.k = 4
= SELECT a.k, b.k FROM n a, m b WHERE a.k = b.k AND b.k = 4
= SELECT k AS v, v AS k FROM n WHERE k = 1
! SELECT v AS k FROM n HAVING k = 1
= SELECT v AS k FROM n WHERE k = 2 HAVING k = 1
= SELECT k FROM n WHERE k = 2 HAVING k = 1
= SELECT k AS x FROM n WHERE k = 2 ORDER BY x
= SELECT v AS k FROM n WHERE n.k = 3 ORDER BY k
= SELECT 1 AS k FROM n WHERE k = 3 GROUP BY k
# Joins, and where the condition stands
= SELECT n.k, m.k FROM n LEFT JOIN m ON n.k = m.k WHERE n.k = 1
= SELECT n.k, m.k FROM n LEFT JOIN m ON n.k = m.k WHERE m.k = 1
= SELECT n.k, m.k FROM n LEFT JOIN m ON n.k = m.k AND m.k = 1
= SELECT n.k, m.k FROM n LEFT JOIN m ON n.k = m.k AND n.k = 1
= SELECT n.k, m.k FROM n LEFT JOIN m ON n.k = m.k AND n.k = 1 WHERE n.k IN (1, 2, 3)
= SELECT n.k, m.k FROM n LEFT JOIN m ON m.k = 1 WHERE n.k = 1
! SELECT n.k, m.k FROM n LEFT JOIN m ON m.k = 1 WHERE n.k = 2
= SELECT n.k, m.k FROM n LEFT JOIN m ON m.k = 5 WHERE n.k = 1
= SELECT n.k, m.k FROM n RIGHT JOIN m ON n.k = m.k WHERE m.k = 1
= SELECT n.k, m.k FROM n RIGHT JOIN m ON n.k = m.k WHERE n.k = 1
= SELECT n.k, m.k FROM n RIGHT JOIN m ON n.k = m.k WHERE n.k IS NULL
= SELECT n.k, m.k FROM n LEFT JOIN m ON n.k = m.k AND m.v = 77 WHERE m.k IS NULL AND n.k = 1
= SELECT n.k, m.k FROM n LEFT JOIN m ON n.k = m.k AND m.v = 77 WHERE m.k IS NULL
= SELECT n.k, m.k FROM n LEFT JOIN m ON n.k = m.k AND m.v = 77 WHERE m.k <=> NULL AND n.k IN (1, 2)
= SELECT n.k, m.k FROM n LEFT JOIN m ON n.k = m.k AND m.v = 77 WHERE (m.k = 1 OR m.k IS NULL) AND n.k = 1
= SELECT n.k, m.k FROM n LEFT JOIN m ON n.k = m.k AND m.v = 77 WHERE NOT (m.k = 1) AND n.k = 1
= SELECT n.k, m.k FROM n LEFT JOIN m ON n.k = m.k AND m.v = 77 WHERE (m.k = 1) IS NOT TRUE AND n.k = 1
= SELECT n.k, m.k FROM n LEFT JOIN m ON n.k = m.k AND m.v = 77 WHERE COALESCE(m.k, 1) = 1 AND n.k = 1
= SELECT n.k, m.k FROM n LEFT JOIN m USING (k) WHERE k = 1
= SELECT k FROM n RIGHT JOIN m USING (k) WHERE k = 1
= SELECT k FROM n RIGHT JOIN m USING (k) WHERE k IN (1, 2, 3, 4)
! SELECT k FROM n NATURAL JOIN m WHERE k = 1
! SELECT k FROM n NATURAL JOIN m
! SELECT k FROM n NATURAL LEFT JOIN m WHERE k = 2
! SELECT k FROM n NATURAL RIGHT JOIN m WHERE k = 2
= SELECT k FROM n JOIN m USING (k, v) WHERE k IN (1, 2)
! SELECT a.k FROM n a JOIN m b USING (k) JOIN n c USING (k) WHERE b.k = 1
! SELECT a.k FROM n a JOIN m b USING (k) JOIN n c USING (k)
! SELECT n.k FROM n JOIN m ON n.k = m.v WHERE n.k = 1
! SELECT n.k FROM n JOIN m ON n.v = m.k WHERE n.k = 1
! SELECT n.k FROM n JOIN m ON n.k = m.k + 1 WHERE n.k = 1
! SELECT n.k FROM n JOIN m ON n.k = m.k OR n.v = m.v WHERE n.k = 1
! SELECT n.k FROM n JOIN m ON n.k <=> m.k WHERE n.k = 1
! SELECT n.k FROM n JOIN m ON n.k <=> m.k
! SELECT n.k FROM n JOIN m ON NOT (n.k <> m.k) WHERE n.k IN (1, 2)
= SELECT n.k FROM n JOIN m ON (n.k, n.v) = (m.k, m.v) WHERE n.k = 1
= SELECT n.k FROM n JOIN m ON (n.k, n.v) = (m.k, m.v)
= SELECT n.k FROM n CROSS JOIN m WHERE n.k = m.k
= SELECT n.k FROM n STRAIGHT_JOIN m ON n.k = m.k WHERE m.k = 3
= SELECT STRAIGHT_JOIN n.k FROM n JOIN m ON n.k = m.k WHERE m.k = 3
! SELECT n.k FROM (n, m) WHERE n.k = m.k AND n.k = 2
= SELECT n.k FROM (n JOIN m ON n.k = m.k) LEFT JOIN p ON p.k = n.k WHERE n.k = 4
= SELECT n.k FROM n LEFT JOIN (m JOIN p ON m.k = p.k) ON n.k = m.k WHERE n.k = 4
! SELECT n.k, p.v FROM p LEFT JOIN n ON n.k = p.k WHERE p.k = 4
= SELECT n.k, p.v FROM p LEFT JOIN n ON n.k = p.k AND n.k = 4
= SELECT n.k, p.v FROM p LEFT JOIN n ON n.k = p.k AND n.k = 4 WHERE n.k = 4
! SELECT n.k, g.v FROM g LEFT JOIN n ON n.k = g.k
= SELECT n.k, g.v FROM g LEFT JOIN n ON n.k = g.k AND n.k = 1
= SELECT n.k, g.v FROM g LEFT JOIN n ON n.k = g.k WHERE n.k = 1
= SELECT n.k, g.v FROM n LEFT JOIN g ON n.k = g.k
! SELECT n.k, g.v FROM n RIGHT JOIN g ON n.k = g.k
= SELECT n.k, g.v FROM n JOIN g ON n.k = g.k
= SELECT n.k, g.v FROM n, g WHERE n.k = g.k AND g.k = 1
! SELECT n.k, u.k FROM n JOIN u ON n.k = u.k WHERE n.k = 2
! SELECT n.k, u.k FROM n JOIN u ON n.k = u.k WHERE u.k = 2
! SELECT n.k, s.k FROM n JOIN s ON n.k = s.k WHERE n.k = 1
! SELECT n.k, s.k FROM n JOIN s ON n.k = s.k WHERE s.k = '1'
= SELECT n.k, y.k FROM n JOIN y ON n.k = y.k WHERE n.k = 4
= SELECT n.k, y.k FROM n JOIN y ON n.k = y.k WHERE y.k = 4
= SELECT s.k, b.k FROM s JOIN b ON s.k = b.k WHERE s.k = 'a'
= SELECT s.k, b.k FROM s JOIN b ON s.k = b.k WHERE b.k = 'a'
! SELECT s.k, c.k FROM s JOIN c ON s.k = c.k WHERE s.k = 'a'
= SELECT d.k, t.k FROM d JOIN t ON d.k = t.k WHERE d.k = '2024-01-05'
= SELECT d.k, t.k FROM d JOIN t ON d.k = t.k WHERE t.k = '2024-01-05'
= SELECT d.k, t.k FROM d JOIN t ON d.k = t.k
! SELECT d.k, t.k FROM d JOIN t ON d.k = DATE(t.k)
= SELECT t.k, t3.k FROM t JOIN t3 ON t.k = t3.k
! SELECT n.k FROM n FULL JOIN m ON n.k = m.k
! SELECT n.k FROM n FULL OUTER JOIN m ON n.k = m.k WHERE n.k = 1
! SELECT n.k FROM n FULL
= SELECT n.k FROM n AS FULL WHERE k = 1
# Subqueries
= SELECT k, (SELECT v FROM m WHERE m.k = n.k LIMIT 1) FROM n WHERE k = 1
! SELECT k, (SELECT v FROM m WHERE m.k = n.k LIMIT 1) FROM n WHERE n.k IN (1, 2)
= SELECT k, (SELECT v FROM m WHERE m.k = 1) FROM n WHERE k = 1
! SELECT k, (SELECT v FROM m WHERE m.k = 1) FROM n
= SELECT k FROM n WHERE k = (SELECT 1)
! SELECT k FROM n WHERE k = (SELECT MAX(k) FROM m WHERE k = 1)
= SELECT k FROM n WHERE k = 1 AND k IN (SELECT k FROM m WHERE k = 1)
! SELECT k FROM n WHERE k IN (SELECT k FROM m WHERE k = 1)
! SELECT k FROM n WHERE k IN (SELECT k FROM m)
! SELECT k FROM n WHERE k = 1 AND k IN (SELECT k FROM m)
! SELECT k FROM n WHERE k = 1 AND k NOT IN (SELECT k FROM m WHERE v = 4)
= SELECT k FROM n WHERE k = 1 AND EXISTS (SELECT * FROM m WHERE k = 1)
= SELECT k FROM n WHERE k = 1 AND EXISTS (SELECT * FROM m WHERE m.k = n.k)
! SELECT k FROM n WHERE k = 1 AND EXISTS (SELECT * FROM m WHERE m.k = n.k + 1)
= SELECT k FROM n WHERE k = 1 AND EXISTS (SELECT * FROM p WHERE p.k = n.k)
= SELECT k FROM n WHERE k = 4 AND EXISTS (SELECT * FROM p WHERE p.k = n.k)
= SELECT k FROM n WHERE k = 1 AND EXISTS (SELECT * FROM g WHERE k = 4 AND n.k = 1)
= SELECT k FROM n WHERE EXISTS (SELECT * FROM g WHERE n.k = 1)
= SELECT k FROM n WHERE EXISTS (SELECT * FROM g WHERE k = 1)
= SELECT k FROM n WHERE k >= ALL (SELECT k FROM m WHERE k = 1) AND k = 1
= SELECT k FROM n WHERE k = ANY (SELECT k FROM m WHERE k = 1) AND k = 1
! SELECT k FROM n WHERE (k, v) = (SELECT k, v FROM m WHERE k = 1)
= SELECT k FROM n WHERE (k, v) = (SELECT k, v FROM m WHERE k = 1) AND k = 1
= SELECT x.k FROM (SELECT k FROM n WHERE k = 1 LIMIT 1 OFFSET 0) x
! SELECT x.k FROM (SELECT k FROM n WHERE k IN (1, 2)) x
! SELECT x.k FROM (SELECT k FROM n ORDER BY k LIMIT 2) x
= SELECT x.k FROM (SELECT k FROM n WHERE k = 1 UNION SELECT k FROM m WHERE k = 1) x
! SELECT x.k FROM (SELECT k FROM n WHERE k = 1 UNION SELECT k FROM m WHERE k = 2) x
= SELECT n.k, x.c FROM n, LATERAL (SELECT COUNT(*) AS c FROM m WHERE m.k = n.k) x WHERE n.k = 1
= SELECT n.k, x.c FROM n, LATERAL (SELECT COUNT(*) AS c FROM m WHERE m.k = n.k AND m.k = 1) x WHERE n.k = 1
= SELECT n.k, x.c FROM n LEFT JOIN LATERAL (SELECT n.v + 1 AS c) x ON TRUE WHERE n.k = 1
? SELECT n.k, x.c FROM n LEFT JOIN LATERAL (SELECT n.v + 1 AS c) x ON TRUE
= SELECT k FROM n WHERE k = 1 IN (SELECT 1)
= SELECT k FROM n WHERE NOT EXISTS (SELECT 1 FROM m WHERE m.k = n.k AND m.k = 1) AND n.k = 1
# All rows together
= SELECT COUNT(*) FROM n WHERE k = 1
= SELECT COUNT(*) FROM n WHERE k IN (1, 1)
= SELECT COUNT(*) FROM n WHERE k IN (1, 5)
= SELECT COUNT(*) FROM n WHERE k IN (1, NULL)
= SELECT COUNT(*) FROM n WHERE k IN (NULL)
= SELECT COUNT(*) FROM n WHERE k = NULL
= SELECT COUNT(*), MAX(v) FROM n WHERE 1 = 0
= SELECT COUNT(*), MAX(v) FROM n WHERE k = 1 AND k = 2
= SELECT COUNT(*) FROM n WHERE k BETWEEN 5 AND 3
= SELECT SUM(v) OVER () FROM n WHERE k = 1
! SELECT SUM(v) OVER () FROM n WHERE k IN (1, 2)
= SELECT SUM(v) OVER w FROM n WHERE k = 1 WINDOW w AS (PARTITION BY k)
! SELECT ROW_NUMBER() OVER (ORDER BY k) FROM n
! SELECT k FROM n ORDER BY k
= SELECT k FROM n WHERE k = 1 UNION SELECT k FROM n WHERE k = 5
! SELECT k FROM n WHERE k = 1 UNION SELECT k FROM n WHERE k = 2
= SELECT k FROM n WHERE k = 1 UNION ALL SELECT 7
! SELECT 7 UNION ALL SELECT k FROM n
= (SELECT k FROM n WHERE k = 1) UNION (SELECT k FROM m WHERE k = 1) ORDER BY k
= (SELECT k FROM n WHERE k = 1)
= ((SELECT k FROM n WHERE k = 1))
! (SELECT k FROM n)
! (SELECT k FROM n) LIMIT 1
= SELECT k FROM n WHERE k = 1 EXCEPT SELECT k FROM m WHERE k = 1
= SELECT k FROM n WHERE k = 1 INTERSECT SELECT k FROM m WHERE k = 1
! SELECT DISTINCT v FROM n
= SELECT DISTINCT v FROM n WHERE k = 1
! SELECT DISTINCTROW v FROM n
= SELECT ALL v FROM n
! SELECT v FROM n GROUP BY v
= SELECT v, COUNT(*) FROM n WHERE k = 1 GROUP BY v WITH ROLLUP
! SELECT SQL_CALC_FOUND_ROWS k FROM n LIMIT 1
= SELECT SQL_NO_CACHE k FROM n
= SELECT SQL_SMALL_RESULT SQL_BUFFER_RESULT k FROM n WHERE k = 1
= SELECT HIGH_PRIORITY k FROM n WHERE k = 1
= SELECT k FROM n LIMIT 0
= SELECT k FROM n WHERE k = 1 LIMIT 0, 1
! SELECT k FROM n LIMIT 2, 1
! SELECT k FROM n LIMIT 1 OFFSET 0
! SELECT k FROM n PROCEDURE ANALYSE()
! TABLE n
! TABLE n LIMIT 1
= VALUES ROW(1, 2), ROW(3, 4)
= SELECT * FROM (VALUES ROW(1, 2)) AS n
! SELECT @a := k FROM n
= SELECT @a := k FROM n WHERE k = 1
= SELECT k INTO @a FROM n WHERE k = 1
= SELECT k FROM n WHERE k = @a
= SELECT k FROM n WHERE k = 1 FOR UPDATE
= SELECT k FROM n WHERE k = 1 LOCK IN SHARE MODE
! SELECT k FROM n FOR UPDATE
= SELECT n.k FROM n, p WHERE n.k = 4 AND p.k = 4 FOR UPDATE
= SELECT k FROM n WHERE k = 1 FOR UPDATE OF n
= SELECT k FROM n x WHERE k = 1 FOR UPDATE OF x SKIP LOCKED
= SELECT k FROM n WHERE k = 1 FOR SHARE NOWAIT
= SELECT BIT_COUNT(k), JSON_ARRAY(k) FROM n WHERE k IN (1, 2)
! SELECT JSON_ARRAYAGG(k) FROM n
! SELECT MIN(k) FROM n
? SELECT ANY_VALUE(k) FROM n WHERE k IN (1, 2)
? SELECT ANY_VALUE(k) FROM n
! SELECT GROUPING(v) FROM n GROUP BY v WITH ROLLUP
= SELECT n.k, `COUNT`.v FROM n JOIN m `COUNT` ON n.k = `COUNT`.k
# Comments, hints, quotes
= SELECT/**/k/**/FROM/**/n/**/WHERE/**/k/**/=/**/1
= SELECT k FROM n -- comment\n WHERE k = 1
= SELECT k FROM n # comment\n WHERE k = 1
! SELECT k FROM n --comment\n WHERE k = 1
= SELECT k FROM n WHERE k = 1--1
= SELECT k FROM n WHERE k = 1 /* AND k = 2 */
= SELECT k FROM n WHERE k = 1 /*! AND k = 2 */
= SELECT k FROM n WHERE k = 1 /*!50000 AND k = 2 */
= SELECT k FROM n WHERE k = 1 /*!99999 AND k = 2 */
= SELECT k FROM n WHERE k = 1 /*!999999 OR k = 2 */
= SELECT k FROM n WHERE k = 1 /*M! OR k = 2 */
= SELECT k FROM n WHERE k = 1 /*M!100100 OR k = 2 */
= SELECT k FROM n WHERE k = 1 /*!100100 OR k = 2 */
= SELECT k FROM n WHERE k = 1 /*!080000 OR k = 2 */
? SELECT k FROM n WHERE k = 1 /*!080000OR k = 2 */
= SELECT k FROM /*!50000 n */ WHERE k = 1
= SELECT k FROM /*!99999 p, */ n WHERE n.k = 1
= SELECT k FROM n WHERE k = /*!50000 1 */ + 1
= SELECT k FROM n WHERE k = 1 /* /* nested */ OR k = 2
= SELECT k FROM n WHERE k = 1 /*! /* nested */ OR k = 2 */
= SELECT k FROM n WHERE k = 1;
= SELECT k FROM n WHERE k = 1; -- end
= SELECT k FROM n WHERE k = 1;;
! SELECT k FROM n WHERE k = 1; SELECT 2
= /* first */ SELECT k FROM n WHERE k = 1
= /*! SELECT */ k FROM n WHERE k = 1
= SELECT /*+ JOIN_ORDER(n) */ k FROM n WHERE k = 1
= SELECT /*+ NO_ICP(n) MAX_EXECUTION_TIME(1000) */ k FROM n
= SELECT /*+ SET_VAR(sql_mode = 'ANSI_QUOTES') */ k FROM n WHERE k = 1
= SELECT /*+ BKA(m) */ n.k FROM n JOIN m ON n.k = m.k
= SELECT k FROM n USE INDEX (PRIMARY) WHERE k = 1
= SELECT k FROM n FORCE INDEX (PRIMARY) WHERE k IN (1, 2)
= SELECT k FROM n IGNORE INDEX FOR JOIN (PRIMARY) WHERE k = 1
= SELECT n.k FROM n USE KEY () JOIN m FORCE KEY (k) ON n.k = m.k
= SELECT k FROM n x USE INDEX (PRIMARY) WHERE k = 1
! SELECT k FROM n PARTITION (p0) WHERE k = 1
= SELECT k FROM n WHERE k = 1 AND w = 'from n'
= SELECT "n", 'n.k', `n`.`w` AS `n.w` FROM n WHERE k = 1
= SELECT k FROM n WHERE w = 'it''s n' OR k = 1 AND w <> "n"
+ SET sql_mode = 'ANSI_QUOTES'
= SELECT "k" FROM "n" WHERE "k" = 1
= SELECT "k" FROM "n" WHERE "n"."k" = 1 AND "w" <> 'k'
= SELECT k FROM n WHERE k = "k"
= SELECT k FROM n WHERE "k" = '1'
= INSERT INTO "n" ("k", "v") VALUES (71, 77)
= DELETE FROM "n" WHERE "k" = 71
+ SET sql_mode = 'NO_BACKSLASH_ESCAPES'
= SELECT k FROM s WHERE k = 'a\'
= SELECT k FROM s WHERE k = '\' OR k = 'a'
= SELECT k FROM s WHERE k = 'it''s'
= INSERT INTO s (k, v) VALUES ('q\q', 77)
= SELECT k FROM s WHERE k = 'q\q'
= DELETE FROM s WHERE k = 'q\q'
+ SET sql_mode = 'HIGH_NOT_PRECEDENCE'
= SELECT k FROM n WHERE NOT k = 1
= SELECT k FROM n WHERE NOT k = 0
= SELECT k FROM n WHERE NOT k BETWEEN 0 AND 1
= SELECT k FROM n WHERE NOT k IN (0, 2)
= SELECT k FROM n WHERE NOT (k = 1) AND k < 3 AND k > -2
+ SET sql_mode = 'PIPES_AS_CONCAT'
= SELECT k FROM n WHERE k = 1 || 6
= SELECT k FROM n WHERE k = '1' || '6'
= SELECT k FROM n WHERE k = 1 || 6 = 16
= SELECT k FROM s WHERE k = 'a' || 'b'
+ SET sql_mode = ''
= SELECT k FROM n WHERE k = 1 || k = 2
= SELECT k FROM n WHERE k = 1 || 0
= SELECT k FROM n WHERE k = 1 && v = 1
= SELECT k FROM n WHERE !k = 1
= SELECT k FROM n WHERE ! k = 0
= SELECT k FROM n WHERE NOT k = 0
= SELECT k FROM n WHERE !(k = 1)
= SELECT k FROM n WHERE k = !0
= SELECT k FROM n WHERE NOT NOT k = 1
= SELECT k FROM n WHERE NOT(k <> 1)
+ SET sql_mode = 'IGNORE_SPACE'
= SELECT COUNT (*) FROM n WHERE k = 1
= SELECT k FROM n WHERE k = 1 AND IF (1, 1, 0)
+ SET sql_mode = 'NO_UNSIGNED_SUBTRACTION,REAL_AS_FLOAT'
= SELECT k FROM u WHERE k = 2 - 1
MARIADB + SET sql_mode = 'ORACLE'
MARIADB = SELECT k FROM n WHERE k = 1
MARIADB = SELECT k FROM s WHERE k = 'a' || 'b'
MARIADB = SELECT k FROM s WHERE k = ''
MARIADB + SET sql_mode = 'EMPTY_STRING_IS_NULL'
MARIADB = SELECT k FROM s WHERE k = ''
MARIADB = SELECT k FROM s WHERE k <=> ''
MARIADB = SELECT k FROM s WHERE NOT (k = '')
MARIADB = SELECT k FROM s WHERE k IS NULL
MARIADB = INSERT INTO s (k, v) VALUES ('', 77)
MARIADB = SELECT k FROM i WHERE k <=> ''
MARIADB ! INSERT INTO i (k, v) VALUES ('', 77)
MARIADB + SET sql_mode = 'MSSQL'
MARIADB = SELECT k FROM n WHERE k = 1
MARIADB + SET sql_mode = ''
MYSQL + SET sql_mode = 'TIME_TRUNCATE_FRACTIONAL'
MYSQL = SELECT k FROM t WHERE k = '2024-01-05 23:59:59.9'
+ SET sql_mode = DEFAULT
# Operators and what binds how
= SELECT k FROM n WHERE k = 1 = 1
= SELECT k FROM n WHERE 1 = k = 1
= SELECT k FROM n WHERE k = 1 <> 0
= SELECT k FROM n WHERE k = 1 IS NULL
= SELECT k FROM n WHERE k = (1 IS NULL)
= SELECT k FROM n WHERE k = 1 AND 1 OR v = 2
= SELECT k FROM n WHERE k = 1 XOR k = 2
= SELECT k FROM n WHERE k = 1 | 2
= SELECT k FROM n WHERE k = 3 & 1
= SELECT k FROM n WHERE k = 2 ^ 3
= SELECT k FROM n WHERE k = 1 << 1
= SELECT k FROM n WHERE k = 5 % 3
= SELECT k FROM n WHERE k = 5 MOD 3
= SELECT k FROM n WHERE k = 7 DIV 2
= SELECT k FROM n WHERE k = 4 / 2
= SELECT k FROM n WHERE k = -1 + 2
= SELECT k FROM n WHERE k = - 2 * 3 + 8
= SELECT k FROM n WHERE k = 2 - - 1
= SELECT k FROM n WHERE k = ~-2
= SELECT k FROM n WHERE k = 1 BETWEEN 0 AND 2
= SELECT k FROM n WHERE k BETWEEN 1 AND 2 AND v = 1
= SELECT k FROM n WHERE k BETWEEN 1 AND 2 OR k = 5
! SELECT k FROM n WHERE k BETWEEN SYMMETRIC 2 AND 1
= SELECT k FROM n WHERE k LIKE 1
= SELECT k FROM n WHERE k LIKE '1%'
= SELECT k FROM n WHERE k RLIKE '^1$'
! SELECT k FROM n WHERE k SOUNDS LIKE '1'
= SELECT k FROM s WHERE k LIKE 'a'
= SELECT k FROM s WHERE k = 'a' COLLATE utf8mb4_bin
= SELECT k FROM s WHERE k COLLATE utf8mb4_bin = 'a'
= SELECT k FROM s WHERE BINARY k = 'a'
= SELECT k FROM s WHERE k = BINARY 'a'
= SELECT k FROM s WHERE LOWER(k) = 'a'
= SELECT k FROM s WHERE k = LOWER('A')
= SELECT k FROM s WHERE k = CAST('a' AS CHAR)
= SELECT k FROM s WHERE k = 'a' 'b'
= SELECT k FROM s WHERE k = 'a' "b"
= SELECT k FROM s WHERE k = 'a'\n'b'
! SELECT k FROM s WHERE k = N'a' 'b'
= SELECT k FROM s WHERE k = _utf8mb4'a' 'b'
= SELECT k FROM s WHERE k = _latin1'a'
= SELECT k FROM s WHERE k = _utf8mb4'a' COLLATE utf8mb4_general_ci
= SELECT k FROM n WHERE k = CAST('1' AS SIGNED)
= SELECT k FROM n WHERE CAST(k AS CHAR) = '1'
! SELECT k FROM n WHERE k = INTERVAL(5, 1, 10)
= SELECT k FROM n WHERE k IN (1, '2', 3.0, 4e0)
= SELECT k FROM n WHERE k IN ((1), (2))
= SELECT k FROM n WHERE k IN (1, v)
= SELECT k FROM n WHERE 1 IN (k, v)
= SELECT k FROM n WHERE (k) IN (1)
= SELECT k FROM n WHERE (k, v) IN ((1, 1), (2, NULL))
= SELECT k FROM n WHERE ROW(k, v) = ROW(6, 1)
= SELECT k FROM n WHERE ROW(k, v) <> ROW(6, 1) AND k IN (5, 6)
= SELECT k FROM n WHERE (k, v) > (16, 0)
= SELECT k FROM n WHERE (k, v) <=> (6, 1)
= SELECT k FROM n WHERE NOT ((k, v) = (6, 1))
= SELECT k FROM n WHERE (v, k) NOT IN ((1, 6), (1, 1)) AND v = 1
= SELECT k FROM n WHERE ((k, v), w) = ((6, 1), 'r6')
= SELECT k FROM n WHERE k = 1 AND NULL
= SELECT k FROM n WHERE k = 1 OR NULL
= SELECT k FROM n WHERE (k = 1 AND NULL) IS NULL AND k IN (1, 2)
= SELECT k FROM n WHERE k = 1 IS UNKNOWN
= SELECT k FROM n WHERE k IS NOT NULL AND k = 1
= SELECT k FROM i WHERE k IS NULL
= SELECT k FROM i WHERE k <=> NULL OR k = 1
= SELECT k FROM n WHERE CASE k WHEN 1 THEN 1 ELSE 0 END
= SELECT k FROM n WHERE IF(k = 1, 1, 0)
= SELECT k FROM n WHERE k = IFNULL(NULL, 1)
= SELECT k FROM n WHERE k = JSON_EXTRACT('[1]', '$[0]')
? SELECT k FROM n WHERE k MEMBER OF ('[1, 2]')
= SELECT k FROM n WHERE k = ANY (SELECT 1)
= SELECT k FROM n WHERE k = DEFAULT(v)
= SELECT k FROM n WHERE k = VALUES(v)
= SELECT k FROM n WHERE k = 0x1 + 0
= SELECT k FROM n WHERE k = 0X1
= SELECT k FROM n WHERE k = 0x
= SELECT k FROM n WHERE k = 0B1
= SELECT k FROM n WHERE k = 1.
= SELECT k FROM n WHERE k = .1e1
= SELECT k FROM n WHERE k = 1e
! SELECT k FROM n WHERE k=1AND v=1
= SELECT k FROM n WHERE k=1.0AND v=1
! SELECT k FROM n WHERE k=0x1AND v=1
= SELECT k FROM n WHERE 1=k+0
= SELECT k FROM n WHERE k = '1' AND k = 1
= SELECT k FROM n WHERE k = 1 AND k = 5
= SELECT k FROM n WHERE k > 1 AND k < 3
= SELECT k FROM n WHERE k > 1.5 AND k < 2.5
= SELECT k FROM n WHERE k < 3 AND k > 3
= SELECT k FROM d WHERE k = '2024-01-05' + INTERVAL 1 DAY
= SELECT k FROM d WHERE k = DATE '2024-01-05'
= SELECT k FROM d WHERE k = DATE('2024-01-05')
= SELECT k FROM d WHERE k = {d '2024-01-05'}
= SELECT k FROM t WHERE k = {ts '2024-01-05 10:00:00'}
= SELECT k FROM t WHERE k >= '2024-01-05' AND k < '2024-01-06'
= SELECT k FROM t WHERE k BETWEEN '2024-01-05' AND '2024-01-05 23:59:59'
= SELECT k FROM t WHERE DATE(k) = '2024-01-05'
= SELECT k FROM d WHERE k BETWEEN '2024-01-05' AND NOW()
= SELECT k FROM d WHERE YEAR(k) = 2024
= SELECT k FROM d WHERE k = 20240105
= SELECT k FROM d WHERE k > 20240105
= SELECT k FROM d WHERE k IN (20240105, '2024-01-06')
= SELECT k FROM d WHERE k = '2024-01-05' OR k = 20260101
= SELECT k FROM d WHERE '2024-01-06' > k
= SELECT k FROM d WHERE k = '2024-01-05' AND k = '2024-1-5'
# Writes
= UPDATE n SET v = 9 WHERE k = 1
= UPDATE n SET v = 8 WHERE k IN (1, 5)
= UPDATE n SET v = 7 WHERE k = '1abc'
= UPDATE n SET v = v + 1
= UPDATE n AS x SET x.v = 6 WHERE x.k = 1
= UPDATE {db}.n SET {db}.n.v = 5 WHERE {db}.n.k = 1
= UPDATE n SET n.v = 4 WHERE k = 1 ORDER BY k LIMIT 1
! UPDATE n SET v = 3 LIMIT 1
! UPDATE n SET k = 1 WHERE k = 1
! UPDATE n SET k = k WHERE k = 1
! UPDATE n SET `K` = 2 WHERE k = 1
! UPDATE n SET n.k = 2 WHERE k = 1
= UPDATE n SET v = (SELECT 5) WHERE k = 1
= UPDATE n SET v = (SELECT v FROM m WHERE m.k = n.k) WHERE k = 1
= UPDATE n SET v = (SELECT MAX(v) FROM m WHERE m.k = 1) WHERE k = 1
! UPDATE n SET v = (SELECT MAX(v) FROM m) WHERE k = 1
= UPDATE n SET v = (SELECT v FROM p WHERE p.k = 4) WHERE k = 4
= UPDATE n SET v = (SELECT v FROM g WHERE g.k = 4) WHERE k IN (1, 2)
= UPDATE n JOIN m ON n.k = m.k SET n.v = m.v + 10 WHERE n.k = 2
= UPDATE n, m SET n.v = m.v + 10, m.v = 6 WHERE n.k = m.k AND n.k = 2
! UPDATE n, m SET n.v = m.v + 10 WHERE n.k = m.k
= UPDATE n JOIN p ON n.k = p.k SET n.v = p.v WHERE n.k = 4
= UPDATE n JOIN p ON n.k = p.k SET p.v = n.v WHERE n.k = 4
! UPDATE n JOIN p ON n.k = p.k SET n.v = p.v
= UPDATE n JOIN g ON n.k = g.k SET n.v = g.v WHERE n.k = 1
= UPDATE n JOIN g ON n.k = g.k SET n.v = g.v
! UPDATE n JOIN g ON n.k = g.k SET g.v = n.v WHERE n.k = 1
! UPDATE n LEFT JOIN m ON n.k = m.k SET n.v = 1 WHERE m.k IS NULL
= UPDATE n LEFT JOIN m ON n.k = m.k AND m.k = 1 SET n.v = 1 WHERE n.k = 1
! UPDATE n LEFT JOIN m ON n.k = m.k SET n.v = 2 WHERE m.k = 2
= UPDATE (SELECT 2 AS k) x JOIN n ON n.k = x.k SET n.v = 3 WHERE n.k = 2
= UPDATE IGNORE n SET v = 9 WHERE k = 1
= UPDATE LOW_PRIORITY n SET v = 10 WHERE k = 1
= UPDATE n SET v = DEFAULT WHERE k = 1
= UPDATE n SET v = 1, w = 'n.k = 2' WHERE k = 1
! WITH x AS (SELECT 1 AS k) UPDATE n JOIN x ON n.k = x.k SET n.v = 5 WHERE n.k = 1
= UPDATE m SET v = 5 WHERE k = 1 AND EXISTS (SELECT 1 FROM n WHERE n.k = m.k)
= UPDATE p SET v = 5 WHERE k = 4 AND EXISTS (SELECT 1 FROM n WHERE n.k = 4)
! UPDATE p SET v = 6 WHERE EXISTS (SELECT 1 FROM n WHERE n.k = p.k)
= DELETE FROM n WHERE k = 17
= DELETE FROM n WHERE n.k = 16
= DELETE FROM {db}.n WHERE {db}.n.k = 15
= DELETE n FROM n WHERE k = 255
= DELETE FROM n USING n WHERE k = 6
= DELETE x FROM n AS x WHERE x.k = 5
= DELETE FROM x USING n AS x WHERE x.k = -17
= DELETE FROM n AS x WHERE x.k = -2
= DELETE n FROM n JOIN m ON n.k = m.k WHERE m.k = -1
= DELETE n, m FROM n JOIN m ON n.k = m.k WHERE m.k = 0
! DELETE n FROM n LEFT JOIN m ON n.k = m.k WHERE m.k IS NULL
= DELETE n FROM n LEFT JOIN m ON n.k = m.k AND m.v = 77 WHERE m.k IS NULL AND n.k = 3
= DELETE m FROM m JOIN p ON m.k = p.k WHERE m.k = 4
! DELETE p FROM m JOIN p ON m.k = p.k WHERE m.k = 4
! DELETE {db}.n FROM n WHERE k = 1
! DELETE n.* FROM n WHERE k = 2
= DELETE FROM n WHERE k = 1 LIMIT 1
= DELETE QUICK FROM n WHERE k = 1
! DELETE FROM n ORDER BY k LIMIT 1
! DELETE FROM n WHERE k IN (SELECT k FROM m WHERE k = 2)
= DELETE FROM n WHERE k = 2 AND k IN (SELECT k FROM m WHERE k = 2)
= DELETE FROM m WHERE v = 77 OR k IN (5, NULL)
= DELETE FROM i WHERE k NOT IN (1, NULL)
= DELETE FROM i WHERE k BETWEEN 4 AND 1
= DELETE FROM i WHERE k BETWEEN 1 AND 4
= INSERT INTO n VALUES (100, 1, 'x')
= INSERT INTO n VALUES (101, 1, 'x'), (102, 2, 'y'), (103, 3, 'z')
= INSERT INTO n (k) VALUES (104)
= INSERT INTO n (v, k) VALUES (5, 105)
= INSERT INTO n (v, K) VALUES (5, 106)
= INSERT INTO n (n.v, n.k) VALUES (5, 107)
= INSERT INTO {db}.n ({db}.n.v, {db}.n.k) VALUES (5, 108)
= INSERT n VALUES (109, 1, 'x')
= INSERT INTO n SET k = 110, v = 1
= INSERT INTO n SET v = 1, n.k = 111
! INSERT INTO n SET v = 1
! INSERT INTO n (v) VALUES (1)
! INSERT INTO n () VALUES ()
! INSERT INTO i () VALUES ()
! INSERT INTO i VALUES (DEFAULT, 1, 'x')
! INSERT INTO i (k, v) VALUES (NULL, 1)
= INSERT INTO n (k, v) VALUES (112, k)
! INSERT INTO n (v, k) VALUES (113, v)
= INSERT INTO n (k, v) VALUES (113 + 1, 1)
! INSERT INTO n (k, v) VALUES (@b, 1)
! INSERT INTO n (k, v) VALUES ((SELECT 115), 1)
= INSERT INTO n (k, v) VALUE (116, 1)
= INSERT INTO n (k, v) VALUES ROW(117, 1), ROW(118, 2)
= INSERT INTO n (k, v, k) VALUES (119, 1, 120)
! INSERT INTO n (k, v) VALUES (121, 1), (122)
! INSERT INTO n VALUES (121, 1)
= INSERT INTO n (k, v) VALUES (100, 1)
= INSERT INTO n (k, v) VALUES (100, 9) ON DUPLICATE KEY UPDATE v = 9
= INSERT INTO n (k, v) VALUES (100, 10) ON DUPLICATE KEY UPDATE v = VALUES(v)
! INSERT INTO n (k, v) VALUES (100, 10) ON DUPLICATE KEY UPDATE k = 5
! INSERT INTO n (k, v) VALUES (100, 10) ON DUPLICATE KEY UPDATE k = VALUES(k)
= INSERT INTO n (k, v) VALUES (100, 10), (101, 11), (130, 1) ON DUPLICATE KEY UPDATE v = v + 1
= INSERT INTO n (k, v) VALUES (100, 11) AS new ON DUPLICATE KEY UPDATE v = new.v
= INSERT INTO n (k, v) VALUES (100, 11) AS n2(a, b) ON DUPLICATE KEY UPDATE v = b
= INSERT INTO n (k, v) VALUES (100, 10) ON DUPLICATE KEY UPDATE v = (SELECT 12)
= INSERT INTO n (k, v) VALUES (100, 10) ON DUPLICATE KEY UPDATE n.v = n.v + 1
! INSERT INTO n (k, v) VALUES (100, 10) ON DUPLICATE KEY UPDATE v = (SELECT MAX(v) FROM m)
= INSERT IGNORE INTO n (k, v) VALUES (100, 10), (131, 1), (132, 1)
! INSERT IGNORE INTO n (k, v) VALUES ('133x', 1)
= INSERT LOW_PRIORITY INTO n (k, v) VALUES (134, 1)
= INSERT HIGH_PRIORITY INTO n (k, v) VALUES (135, 1)
= INSERT DELAYED INTO n (k, v) VALUES (136, 1)
= REPLACE INTO n (k, v) VALUES (100, 20), (137, 1)
= REPLACE n SET k = 100, v = 21
= REPLACE INTO n VALUES (100, 22, NULL)
= REPLACE DELAYED INTO n (k, v) VALUES (138, 1)
= INSERT INTO n (k, v) SELECT 140, 1
= INSERT INTO n (k, v) SELECT 141, v FROM p WHERE k = 1
= INSERT INTO n (k, v) SELECT 144, v FROM p WHERE k = 1
= INSERT INTO n (k, v) SELECT k, v FROM m WHERE k = 2
! INSERT IGNORE INTO n (k, v) SELECT k, v FROM m
= INSERT INTO m (k, v) SELECT k, v FROM n WHERE k = 100
! INSERT INTO m (k, v) SELECT k + 1, v FROM n WHERE k = 100
! INSERT INTO m (v, k) SELECT k, v FROM n WHERE k = 100
! INSERT INTO m SELECT * FROM n WHERE k = 100
! INSERT INTO m SELECT n.* FROM n WHERE k = 100
= INSERT INTO m (k, v) SELECT n.k, g.v FROM n JOIN g ON g.k = 1 WHERE n.k = 100
= INSERT INTO m (k, v) SELECT a.k, b.v FROM n a JOIN n b ON a.k = b.k WHERE b.k = 100
! INSERT INTO m (k, v) SELECT k, v FROM n WHERE k = 100 UNION SELECT 5, 5
= INSERT INTO m (k, v) SELECT k AS v, v AS k FROM n WHERE k = 100
! INSERT INTO m (k, v) (SELECT k, v FROM n WHERE k = 100)
= INSERT INTO m (k, v) WITH x AS (SELECT 1) SELECT k, v FROM n WHERE k = 100
! INSERT INTO m (k, v) TABLE p
= INSERT INTO m (k, v) VALUES (200, 1), (201, 1), (200, 2)
= INSERT INTO p SELECT * FROM n WHERE k = 100
! INSERT INTO p (k, v) SELECT COUNT(*), 1 FROM n
= INSERT INTO p (k, v) SELECT k, v FROM n WHERE k = 1
= INSERT INTO p (k, v) VALUES ((SELECT MAX(v) FROM n WHERE k = 100), 1)
! INSERT INTO p (k, v) VALUES ((SELECT MAX(v) FROM n), 1)
! INSERT INTO g (k, v) SELECT k, v FROM n WHERE k = 100
= INSERT INTO g (k, v) VALUES (9, 9)
! INSERT INTO g (k, v) VALUES ((SELECT MAX(v) FROM n WHERE k = 100), 1)
= DELETE FROM g WHERE k = 9
= UPDATE g SET v = (SELECT v FROM n WHERE k = 100) WHERE k = 1
! INSERT INTO n PARTITION (p0) (k, v) VALUES (150, 1)
= INSERT INTO n (k, v) VALUES (150, 1) RETURNING k
! INSERT INTO n (k, v) VALUES (151, 1), (152, 1) RETURNING k
= DELETE FROM n WHERE k = 150 RETURNING v
! DELETE FROM n RETURNING v
= INSERT INTO u (k, v) VALUES (18446744073709551613, 1)
= INSERT INTO u (k, v) VALUES (-1, 1)
= INSERT INTO y (k, v) VALUES (256, 1)
! INSERT IGNORE INTO y (k, v) VALUES (256, 1)
! INSERT IGNORE INTO y (k, v) VALUES (-1, 1)
! INSERT IGNORE INTO s (k, v) VALUES ('toolongtext', 1)
! INSERT IGNORE INTO t (k, v) VALUES ('2024-01-05 23:59:59.7', 1)
= SELECT k, v FROM t WHERE v = 1
= SELECT k, v FROM t WHERE k = '2024-01-06'
! SELECT k FROM n WHERE k = 1 INTO @c
= EXPLAIN SELECT k FROM nosuch.n WHERE k = 1
= EXPLAIN DELETE FROM n WHERE k = 1
! DO (SELECT k FROM n WHERE k = 1)
! SET @d = (SELECT v FROM n WHERE k = 100)
! CREATE TABLE n2 SELECT * FROM n
! CREATE TABLE n2 LIKE n
! CREATE VIEW nv AS SELECT * FROM n
! CREATE TEMPORARY TABLE n (k INT)
! HANDLER n OPEN
! LOCK TABLES n READ
! CALL nosuch((SELECT k FROM n WHERE k = 1))
! CHECKSUM TABLE n
! LOAD DATA INFILE '/nosuch' INTO TABLE n
# What comes with NULL keys, and what is said in strings
! INSERT INTO m (k, v) SELECT n.k, g.v FROM g LEFT JOIN n ON n.k = g.k AND n.k = 100 WHERE g.k = 4
= SELECT * FROM m WHERE k IS NULL
! INSERT INTO m (k, v) SELECT k, COUNT(*) FROM n WHERE k = 100 GROUP BY k WITH ROLLUP
= SELECT * FROM m WHERE k IS NULL
! INSERT INTO m (k, v) SELECT NULLIF(k, 100), v FROM n WHERE k = 100
! PREPARE s FROM 'SELECT * FROM n WHERE k = 100'
MARIADB ! EXECUTE IMMEDIATE 'SELECT * FROM n WHERE k = 100'
+ SET @zz = CONCAT('SELECT * FROM ', 'i')
! PREPARE zz FROM @zz
! SELECT 1; PREPARE zz FROM @zz
! SELECT 1; PREPARE zz FROM 'SELECT * FROM i'
= EXECUTE zz
MARIADB ! EXECUTE IMMEDIATE @zz
MARIADB ! EXECUTE IMMEDIATE CONCAT('SELECT * ', 'FROM i')
+ DO 0
# WITH, and the tables that its names hide
! WITH x AS (SELECT k FROM p WHERE k = 1), p AS (SELECT 9 AS k) SELECT x.k, n.v FROM x JOIN n ON n.k = 3
! WITH p AS (SELECT k FROM p WHERE k = 1) SELECT p.k, n.v FROM p JOIN n ON n.k = 3
= WITH p AS (SELECT k FROM p WHERE k = 1) SELECT p.k, n.v FROM p JOIN n ON n.k = 4
= WITH g AS (SELECT k FROM g WHERE k = 1) SELECT g.k, n.v FROM g JOIN n ON n.k = 3
= WITH RECURSIVE p AS (SELECT 1 AS k UNION ALL SELECT k + 1 FROM p WHERE k < 3) SELECT p.k, n.v FROM p JOIN n ON n.k = 3
# Columns that two tables have together, of other types
= SELECT k FROM (SELECT 1 AS k) x JOIN s USING (k) WHERE k = '1'
= SELECT k, s.k FROM (SELECT 1 AS k) x JOIN s USING (k) WHERE k = '1'
= SELECT k, s.k FROM (SELECT 12 AS k) x JOIN s USING (k) WHERE k = '12'
= SELECT k, s.k FROM g JOIN s USING (k) WHERE k = '1'
! SELECT k, s.k FROM g LEFT JOIN s USING (k) WHERE k = '1'
= SELECT k, s.k FROM g NATURAL JOIN s WHERE k = '1'
= SELECT k, s.k FROM s JOIN g USING (k) WHERE k = '1'
! SELECT k, s.k FROM p JOIN s USING (k) WHERE k = '1'
! SELECT n.k, s.k FROM n JOIN s USING (k) WHERE k = '1'
! SELECT n.k, s.k FROM n JOIN s USING (k) WHERE n.k = '1'
! SELECT n.k, s.k FROM n JOIN s USING (k) WHERE s.k = '1'
= SELECT g.k, s.k FROM g JOIN s ON g.k = s.k WHERE s.k = '1'
= SELECT g.k, s.k FROM g JOIN s ON g.k = s.k WHERE g.k = 1
= SELECT n.k, g.k FROM n JOIN g USING (k) WHERE k = 1
= SELECT n.k, g.k FROM g JOIN n USING (k) WHERE k = 1
= SELECT n.k, m.k FROM n JOIN m USING (k) WHERE k = 3
= UPDATE (SELECT 1 AS j) x, i SET i.v = 3 WHERE i.k = 1
= DELETE i FROM (SELECT 1 AS j) x, i WHERE i.k = 3
= INSERT INTO p (k, v) SELECT i.k, 9 FROM (SELECT 1 AS j) x, i WHERE i.k = 5
MYSQL ! INSERT /*+ SET_VAR(sql_mode = '') */ INTO y (k, v) VALUES (300, 1)
MYSQL = INSERT /*+ SET_VAR(sql_mode = '') */ INTO y (k, v) VALUES (30, 1)
MARIADB ! SET STATEMENT sql_mode = '' FOR INSERT INTO y (k, v) VALUES (300, 1)
! INSERT IGNORE INTO y SELECT * FROM n WHERE k = 300
= INSERT IGNORE INTO m (k, v) SELECT k, v FROM n WHERE k = 300
# A time is rounded where fewer digits are kept.
! INSERT INTO t (k, v, w) SELECT k, v, w FROM t3 WHERE v = 3
= INSERT INTO t3 (k, v, w) SELECT k, v, w FROM t WHERE k < '2024-01-06'
= INSERT INTO d (k, v, w) SELECT k, v, w FROM t WHERE k = '2024-01-07 12:00:00'
