# frozen_string_literal: true

module Benchmarks
  # PostgreSQL writes the JSON:API document of the users in one statement, an optimized and a usual one.
  #
  #   JsonStatements.new(1000).grouped      # => '{"data":[…],"included":[…]}'
  #   JsonStatements.new(1000).correlated
  #
  # The optimized statement groups each list once and concatenates text; the usual one uses json_agg of
  # correlated subqueries. Both are prepared; the driver returns one String.
  class JsonStatements
    CHOSEN = <<~SQL
      chosen AS MATERIALIZED (
        SELECT id, email, first_name, last_name FROM users WHERE id IN (
          SELECT user_id FROM assignments JOIN roles role ON role.id = role_id WHERE role.title IN ('Administrator', 'Manager'))
        ORDER BY id LIMIT %<limit>d)
    SQL
    NEWEST = "SELECT last_used_at FROM authentication_tokens t WHERE t.user_id = chosen.id AND NOT on_behalf ORDER BY id DESC LIMIT 1"
    TIME = %q('YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')

    GROUPED = <<~SQL.freeze
      WITH #{CHOSEN},
      role_links AS MATERIALIZED (
        SELECT a.user_id, a.role_id, a.id FROM assignments a JOIN chosen ON chosen.id = a.user_id),
      group_links AS MATERIALIZED (
        SELECT a.user_id, a.group_id, a.id FROM group_assignments a JOIN chosen ON chosen.id = a.user_id),
      roles_of AS (
        SELECT user_id, string_agg('{"type":"roles","id":"' || role_id || '"}', ',' ORDER BY id) AS links FROM role_links GROUP BY user_id),
      groups_of AS (
        SELECT user_id, string_agg('{"type":"groups","id":"' || group_id || '"}', ',' ORDER BY id) AS links
        FROM group_links GROUP BY user_id),
      tokens_of AS (
        SELECT DISTINCT ON (t.user_id) t.user_id, t.last_used_at FROM authentication_tokens t JOIN chosen ON chosen.id = t.user_id
        WHERE NOT t.on_behalf ORDER BY t.user_id, t.id DESC)
      SELECT '{"data":[' || coalesce((
        SELECT string_agg('{"type":"users","id":"' || chosen.id || '","attributes":{"email":' || to_json(email)
          || ',"first_name":' || to_json(first_name) || ',"last_name":' || to_json(last_name)
          || ',"last_login_at":' || coalesce('"' || to_char(last_used_at, #{TIME}) || '"', 'null')
          || ',"employee_id":' || coalesce(employees.id::text, 'null')
          || '},"relationships":{"roles":{"data":[' || coalesce(roles_of.links, '')
          || ']},"groups":{"data":[' || coalesce(groups_of.links, '') || ']}}}', ',' ORDER BY chosen.id)
        FROM chosen
        LEFT JOIN roles_of ON roles_of.user_id = chosen.id
        LEFT JOIN groups_of ON groups_of.user_id = chosen.id
        LEFT JOIN tokens_of ON tokens_of.user_id = chosen.id
        LEFT JOIN employees ON employees.user_id = chosen.id), '')
      || '],"included":[' || concat_ws(',',
        (SELECT string_agg('{"type":"roles","id":"' || id || '","attributes":{"title":' || to_json(title) || '}}', ',')
         FROM roles WHERE id IN (SELECT role_id FROM role_links)),
        (SELECT string_agg('{"type":"groups","id":"' || id || '","attributes":{"name":' || to_json(name) || '}}', ',')
         FROM groups WHERE id IN (SELECT group_id FROM group_links))) || ']}'
    SQL

    CORRELATED = <<~SQL.freeze
      WITH #{CHOSEN}
      SELECT json_build_object(
        'data', (SELECT json_agg(json_build_object(
          'type', 'users', 'id', chosen.id::text,
          'attributes', json_build_object('email', email, 'first_name', first_name, 'last_name', last_name,
            'last_login_at', to_char((#{NEWEST}), #{TIME}),
            'employee_id', (SELECT e.id FROM employees e WHERE e.user_id = chosen.id)),
          'relationships', json_build_object(
            'roles', json_build_object('data', (
              SELECT coalesce(json_agg(json_build_object('type', 'roles', 'id', a.role_id::text) ORDER BY a.id), '[]')
              FROM assignments a WHERE a.user_id = chosen.id)),
            'groups', json_build_object('data', (
              SELECT coalesce(json_agg(json_build_object('type', 'groups', 'id', a.group_id::text) ORDER BY a.id), '[]')
              FROM group_assignments a WHERE a.user_id = chosen.id)))) ORDER BY chosen.id) FROM chosen),
        'included', (SELECT json_agg(object) FROM (
          SELECT json_build_object('type', 'roles', 'id', id::text, 'attributes', json_build_object('title', title)) AS object
          FROM roles WHERE id IN (SELECT role_id FROM assignments WHERE user_id IN (SELECT id FROM chosen))
          UNION ALL
          SELECT json_build_object('type', 'groups', 'id', id::text, 'attributes', json_build_object('name', name))
          FROM groups WHERE id IN (SELECT group_id FROM group_assignments WHERE user_id IN (SELECT id FROM chosen))) included))
    SQL

    # @param users [Integer] the maximum number of users
    def initialize(users)
      @connection = ActiveRecord::Base.connection.raw_connection
      { "castellan_grouped" => GROUPED, "castellan_correlated" => CORRELATED }.each do |name, sql|
        @connection.prepare(name, format(sql, limit: users))
      end
    end

    # @return [String]
    def grouped
      @connection.exec_prepared("castellan_grouped", []).getvalue(0, 0)
    end

    # @return [String]
    def correlated
      @connection.exec_prepared("castellan_correlated", []).getvalue(0, 0)
    end
  end
end
