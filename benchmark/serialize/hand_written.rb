# frozen_string_literal: true

require "pg"

module Benchmarks
  # The lower limit: the seven SELECTs that a person would write for the document of the users.
  #
  #   floor = HandWritten.new(limit: 20)
  #   floor.call       # => seven lists of rows
  #   floor.document   # => the JSON:API document of these rows, for comparison with the others
  #
  # Each SELECT uses the ids that the previous one returned. Rows are arrays of the driver, and no JSON is
  # written during the measurement.
  class HandWritten
    KEYS = { "PostgreSQL" => "= ANY($1)", "SQLite" => "IN (SELECT value FROM json_each(?))" }.freeze
    # Only PostgreSQL has DISTINCT ON. In SQLite, max(id) makes the other columns those of the same row.
    TOKENS = { "PostgreSQL" => "SELECT DISTINCT ON (user_id) user_id, last_used_at FROM authentication_tokens " \
                               "WHERE user_id %s AND NOT on_behalf ORDER BY user_id, id DESC",
               "SQLite" => "SELECT user_id, last_used_at, max(id) FROM authentication_tokens " \
                           "WHERE user_id %s AND NOT on_behalf GROUP BY user_id" }.freeze
    TEXTS = PG::TypeMapAllStrings.new.freeze
    private_constant :KEYS, :TOKENS, :TEXTS

    # @param limit [Integer, nil]
    def initialize(limit: nil)
      connection = ActiveRecord::Base.connection
      @postgres = connection.adapter_name == "PostgreSQL"
      @raw = connection.raw_connection
      @users = "SELECT id, email, first_name, last_name FROM users ORDER BY id#{" LIMIT #{limit}" if limit}"
      @rest = statements(connection.adapter_name)
      @prepared = {}
    end

    # @return [Array<Array<Array>>]
    def call
      users = rows(@users)
      ids = users.map(&:first)
      employees, tokens, roles, groups = @rest.first(4).map { |sql| rows(sql, ids) }
      [users, employees, tokens, roles, groups, rows(@rest[4], roles.map(&:last).uniq), rows(@rest[5], groups.map(&:last).uniq)]
    end

    # @return [String] JSON:API
    def document
      users, employees, tokens, links, memberships, roles, groups = call
      tokens, employees = [tokens, employees].map { |rows| rows.to_h { |id, value| [id, value] } }
      links, memberships = [links, memberships].map { |rows| rows.group_by(&:first) }
      JSON.generate(data: users.map { |row| user(row, tokens, employees, roles: links, groups: memberships) },
                    included: [*objects("roles", :title, roles), *objects("groups", :name, groups)])
    end

    private

    def statements(database)
      keys = KEYS.fetch(database)
      ["SELECT user_id, id FROM employees WHERE user_id #{keys}", format(TOKENS.fetch(database), keys),
       "SELECT user_id, role_id FROM assignments WHERE user_id #{keys} ORDER BY id",
       "SELECT user_id, group_id FROM group_assignments WHERE user_id #{keys} ORDER BY id",
       "SELECT id, title FROM roles WHERE id #{keys}", "SELECT id, name FROM groups WHERE id #{keys}"]
    end

    def rows(sql, ids = nil)
      return texts(@raw.exec_params(sql, ids ? ["{#{ids.join(",")}}"] : [])) if @postgres

      statement = @prepared[sql] ||= @raw.prepare(sql)
      statement.reset!
      statement.bind_param(1, JSON.generate(ids)) if ids
      statement.to_a
    end

    # Without ActiveRecord's decoders, which build a Time for each token.
    def texts(result)
      result.type_map = TEXTS
      result.values
    end

    def user((id, email, first_name, last_name), tokens, employees, links)
      used = tokens[id]
      used = "#{used[0, 10]}T#{used[11, 8]}.000Z" if used
      { type: "users", id: id.to_s,
        attributes: { email: email, first_name: first_name, last_name: last_name, last_login_at: used, employee_id: employees[id]&.to_i },
        relationships: links.to_h { |name, rows| [name, { data: (rows[id] || []).map { |row| { type: name, id: row[1].to_s } } }] } }
    end

    def objects(type, attribute, rows)
      rows.map { |id, value| { type: type, id: id.to_s, attributes: { attribute => value } } }
    end
  end
end
