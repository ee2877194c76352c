# frozen_string_literal: true

require "active_record"

module Castellan
  module Versions
    # Adds `castellan_versions` to migrations and schema.rb. The Railtie calls {.extend_active_record}.
    #
    #   class AddVersions < ActiveRecord::Migration[7.2]
    #     def change
    #       castellan_versions :posts, :users   # reversible; the inverse is remove_castellan_versions
    #     end
    #   end
    #
    # The schema dumper writes the same line into schema.rb, so loading the schema installs the triggers;
    # structure.sql contains the triggers themselves. PostgreSQL and SQLite only.
    module ActiveRecordSchema
      COUNTERS = /\Acastellan_(?:versions|buckets)\z/
      LONGEST_LINE = 100
      private_constant :COUNTERS, :LONGEST_LINE

      # Includes the modules below in ActiveRecord. May be called again.
      def self.extend_active_record
        ::ActiveRecord::ConnectionAdapters::AbstractAdapter.include(Statements)
        ::ActiveRecord::Migration.include(MigrationMethods)
        ::ActiveRecord::Migration::CommandRecorder.include(Recorder)
        ::ActiveRecord::SchemaDumper.prepend(Dumper)
        ActiveSupport.on_load(:active_record_postgresqladapter) { prepend ReferentialIntegrity }
      end

      # Methods of a connection.
      module Statements
        # Installs the triggers of {ExactVersions}, each table in a transaction, unless there is one already. May run again,
        # but then cached documents of these tables become invalid.
        # @param tables [Array<String, Symbol>] with `notify: true` as the last argument, writes also notify
        #   {NotifiedVersions}; with `by: :account_id` (or several columns), each value of the column has its
        #   own version, see {Dependency}. Both options work on PostgreSQL and do nothing on SQLite
        # @raise [ConfigurationError] for other databases, or an invalid table name
        def castellan_versions(*tables)
          options = castellan_options(tables)
          names = tables.flatten.grep_v(Hash).map { |table| Dependency.new(table).table }
          names.each { |name| transaction { castellan_triggers.install(name, **options).each { |sql| execute(sql) } } }
        end

        # Removes the triggers and the versions.
        # @param tables [Array<String, Symbol>]
        def remove_castellan_versions(*tables)
          names = tables.flatten.grep_v(Hash).map { |table| Dependency.new(table).table }
          names.each { |name| transaction { castellan_triggers.uninstall(name).each { |sql| execute(sql) } } }
        end

        # @return [Hash{Hash => Array<String>}] the tables that have triggers, by their options, for schema.rb
        def castellan_version_tables
          return {} unless adapter_name.match?(/postg/i) || (adapter_name.match?(/sqlite/i) && table_exists?("castellan_versions"))
          return { {} => select_values(castellan_triggers.installed) } if castellan_triggers == SQLiteTriggers

          columns = table_exists?("castellan_buckets") ? select_rows(castellan_triggers.columns).to_h : {}
          [false, true].flat_map { |notify|
            select_values(castellan_triggers.installed(notify: notify))
              .map { |table| [table, { by: columns[table]&.split(","), notify: notify || nil }.compact] }
          }.group_by(&:last).transform_values { |tables| tables.map(&:first) }
        end

        private

        # A migration passes its arguments as one list.
        def castellan_options(tables)
          options = tables.last.is_a?(Hash) ? tables.last : {}
          unknown = options.keys - %i[notify by]
          raise ConfigurationError, "castellan_versions takes notify: true and by: :account_id, got #{unknown.first}:" if unknown.any?

          castellan_triggers == PostgresTriggers ? { notify: options[:notify] == true, by: [*options[:by]].map(&:to_s) } : {}
        end

        def castellan_triggers
          RawConnections.dialect(adapter_name) == :postgres ? PostgresTriggers : SQLiteTriggers
        end
      end

      # Methods of migrations and schema.rb, which apply a table name prefix or suffix.
      module MigrationMethods
        # (see Statements#castellan_versions)
        def castellan_versions(*tables) = change_castellan_versions(:castellan_versions, tables)

        # (see Statements#remove_castellan_versions)
        def remove_castellan_versions(*tables) = change_castellan_versions(:remove_castellan_versions, tables)

        private

        def change_castellan_versions(command, tables)
          say_with_time("#{command}(#{tables.map(&:inspect).join(", ")})") do
            tables = tables.flatten
            reverting = connection.respond_to?(:revert)
            tables = tables.map { |table| table.is_a?(Hash) ? table : proper_table_name(table, table_name_options) } unless reverting
            connection.public_send(command, *tables)
          end
        end
      end

      module Recorder
        def castellan_versions(*tables) = record(:castellan_versions, tables)
        def remove_castellan_versions(*tables) = record(:remove_castellan_versions, tables)
        def invert_castellan_versions(tables) = [:remove_castellan_versions, tables]
        def invert_remove_castellan_versions(tables) = [:castellan_versions, tables]
      end

      # Adds the line after the tables, and omits the tables of versions.
      module Dumper
        private

        def tables(stream)
          super
          @connection.castellan_version_tables.each do |options, tables|
            names = tables.reject { |name| ignored?(name) }.map { |name| remove_prefix_and_suffix(name).inspect }
            castellan_line(stream, names + options.map { |name, value| "#{name}: #{value.inspect}" }) if names.any?
          end
        end

        def castellan_line(stream, arguments)
          line = "  castellan_versions #{arguments.join(", ")}"
          stream.puts
          stream.puts(line.size <= LONGEST_LINE ? line : "  castellan_versions(\n    #{arguments.join(",\n    ")}\n  )")
        end

        # Do not use `ignore_tables` for this: it also omits the tables from structure.sql, where the triggers
        # need them.
        def ignored?(table)
          COUNTERS.match?(table) || super
        end
      end

      # Loading fixtures disables and enables all triggers, which loses ENABLE ALWAYS; this restores it.
      module ReferentialIntegrity
        def disable_referential_integrity(&block)
          result = super
          begin
            transaction(requires_new: true) { execute(PostgresTriggers.enable_always) }
          rescue ::ActiveRecord::ActiveRecordError
            nil # without the permission, documents of these tables are not cached
          end
          result
        end
      end
    end
  end
end
