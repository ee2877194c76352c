# frozen_string_literal: true

require "pg"

module Benchmarks
  # The lower limit for a document: a program written by hand only for this document.
  #
  #   ByHand.new.users                                                  # => the JSON:API document of all users
  #   ByHand.new(where: "WHERE id IN (SELECT user_id FROM …)").users    # => of some users
  #   ByHand.new.one(7)                                                 # => of one user, only attributes
  #
  # SELECTs contain the joins, all statements are prepared, and the document is built from strings, without a
  # hash per record.
  class ByHand
    # In SQLite, max(id) makes the other columns those of the same row.
    TOKENS = { "PostgreSQL" => "SELECT DISTINCT ON (user_id) user_id, last_used_at FROM authentication_tokens " \
                               "WHERE NOT on_behalf ORDER BY user_id, id DESC",
               "SQLite" => "SELECT user_id, last_used_at, max(id) FROM authentication_tokens WHERE NOT on_behalf GROUP BY user_id" }.freeze
    TEXTS = PG::TypeMapAllStrings.new.freeze
    private_constant :TOKENS, :TEXTS

    # @param where [String] SQL condition on the users
    def initialize(where: "")
      @connection = ActiveRecord::Base.connection.raw_connection
      @postgres = @connection.is_a?(PG::Connection)
      @chosen = where.empty? ? "" : "WHERE user_id IN (SELECT id FROM users #{where})"
      @where = where
      @prepared = {}
    end

    # @return [String]
    def users
      roles = links("roles", "SELECT user_id, role_id FROM assignments #{@chosen} ORDER BY id")
      groups = links("groups", "SELECT user_id, group_id FROM group_assignments #{@chosen} ORDER BY id")
      body = +'{"data":['
      rows(users_sql).each do |row|
        body << user(row) << ',"relationships":{"roles":{"data":[' << roles[row[0]].to_s <<
          ']},"groups":{"data":[' << groups[row[0]].to_s << "]}}},"
      end
      body.chop! << '],"included":['
      included(body, "roles", "title", "assignments", "role_id")
      included(body, "groups", "name", "group_assignments", "group_id")
      body.chop! << "]}"
    end

    # @return [String]
    def one(id)
      id, email, first_name, last_name = rows("SELECT id, email, first_name, last_name FROM users WHERE id = $1", [id]).first
      %({"data":{"type":"users","id":"#{id}","attributes":{"email":#{JSON.generate(email)},"first_name":#{JSON.generate(first_name)},) +
        %("last_name":#{JSON.generate(last_name)}}}})
    end

    private

    def users_sql
      @users_sql ||= "SELECT u.id, u.email, u.first_name, u.last_name, t.last_used_at, e.id FROM (SELECT * FROM users #{@where}) u " \
                     "LEFT JOIN (#{TOKENS.fetch(@postgres ? "PostgreSQL" : "SQLite")}) t ON t.user_id = u.id " \
                     "LEFT JOIN employees e ON e.user_id = u.id ORDER BY u.id"
    end

    def user((id, email, first_name, last_name, used, employee))
      used = %("#{used[0, 10]}T#{used[11, 8]}.#{used[20, 3].to_s.ljust(3, "0")}Z") if used
      %({"type":"users","id":"#{id}","attributes":{"email":#{JSON.generate(email)},"first_name":#{JSON.generate(first_name)},) +
        %("last_name":#{JSON.generate(last_name)},"last_login_at":#{used || "null"},"employee_id":#{employee || "null"}})
    end

    # @return [Hash{String => String}] by user id, the linkage joined with commas
    def links(type, sql)
      rows(sql).each_with_object({}) do |(user, id), found|
        known = found[user]
        known ? known << %(,{"type":"#{type}","id":"#{id}"}) : found[user] = %({"type":"#{type}","id":"#{id}"})
      end
    end

    def included(body, type, attribute, join_table, key)
      rows("SELECT id, #{attribute} FROM #{type} WHERE id IN (SELECT #{key} FROM #{join_table} #{@chosen})").each do |id, value|
        body << %({"type":"#{type}","id":"#{id}","attributes":{"#{attribute}":#{JSON.generate(value)}}},)
      end
    end

    def rows(sql, values = [])
      @postgres ? postgres(sql, values) : sqlite(sql, values)
    end

    def postgres(sql, values)
      name = @prepared[sql] ||= "by_hand_#{object_id}_#{@prepared.size}".tap { |one| @connection.prepare(one, sql) }
      result = @connection.exec_prepared(name, values)
      result.type_map = TEXTS
      result.values
    end

    def sqlite(sql, values)
      statement = @prepared[sql] ||= @connection.prepare(sql)
      statement.reset!
      statement.bind_params(*values)
      statement.to_a
    end
  end
end
