# frozen_string_literal: true

require "active_record"

module Castellan
  module Versions
    # Adds `castellan_versions` to migrations and to schema.rb. In Rails the Railtie calls {.extend_active_record}.
    #
    #   class AddVersions < ActiveRecord::Migration[7.2]
    #     def change
    #       castellan_versions :posts, :users   # rolled back by remove_castellan_versions, which can be written, too
    #     end
    #   end
    #
    # The schema dumper writes the line into schema.rb, so loading the schema installs the triggers; structure.sql contains
    # the triggers themselves. Only on PostgreSQL and SQLite.
    module ActiveRecordSchema
      COUNTERS = /\Acastellan_(?:versions|records|record_tables)\z/ # the last two of older versions
      LONGEST_LINE = 100
      private_constant :COUNTERS, :LONGEST_LINE

      # Includes the modules below in ActiveRecord; a second call changes nothing.
      def self.extend_active_record
        ::ActiveRecord::ConnectionAdapters::AbstractAdapter.include(Statements)
        ::ActiveRecord::Migration.include(MigrationMethods)
        ::ActiveRecord::Migration::CommandRecorder.include(Recorder)
        ::ActiveRecord::SchemaDumper.prepend(Dumper)
        ActiveSupport.on_load(:active_record_postgresqladapter) { prepend ReferentialIntegrity }
      end

      # Methods of a connection.
      module Statements
        # Installs the triggers of {ExactVersions}; installing again is harmless, and makes cached documents stale.
        # @param tables [Array<String, Symbol>]
        # @raise [ConfigurationError] for a database without such triggers, and for what is no name of a table
        def castellan_versions(*tables)
          transaction { tables.each { |table| castellan_triggers.install(Dependency.new(table).table).each { |sql| execute(sql) } } }
        end

        # Removes the triggers and the counters of tables.
        # @param tables [Array<String, Symbol>]
        def remove_castellan_versions(*tables)
          transaction { tables.each { |table| castellan_triggers.uninstall(Dependency.new(table).table).each { |sql| execute(sql) } } }
        end

        # @return [Array<String>] the tables of the schema with triggers, for schema.rb
        def castellan_version_tables
          return [] unless adapter_name.match?(/postg/i) || (adapter_name.match?(/sqlite/i) && table_exists?("castellan_versions"))

          select_values(castellan_triggers.installed)
        end

        private

        def castellan_triggers
          RawConnections.dialect(adapter_name) == :postgres ? PostgresTriggers : SQLiteTriggers
        end
      end

      # Methods of a migration, and of the block in schema.rb: a prefix of table names is added.
      module MigrationMethods
        # (see Statements#castellan_versions)
        def castellan_versions(*tables) = change_castellan_versions(:castellan_versions, tables)

        # (see Statements#remove_castellan_versions)
        def remove_castellan_versions(*tables) = change_castellan_versions(:remove_castellan_versions, tables)

        private

        def change_castellan_versions(command, tables)
          say_with_time("#{command}(#{tables.map(&:inspect).join(", ")})") do
            reverting = connection.respond_to?(:revert)
            tables = tables.map { |table| proper_table_name(table, table_name_options) } unless reverting
            connection.public_send(command, *tables)
          end
        end
      end

      # Makes both methods reversible.
      module Recorder
        def castellan_versions(*tables) = record(:castellan_versions, tables)
        def remove_castellan_versions(*tables) = record(:remove_castellan_versions, tables)
        def invert_castellan_versions(tables) = [:remove_castellan_versions, tables]
        def invert_remove_castellan_versions(tables) = [:castellan_versions, tables]
      end

      # Writes the line below the tables and leaves out the tables of counters.
      module Dumper
        private

        def tables(stream)
          super
          names = @connection.castellan_version_tables.reject { |name| ignored?(name) }
          return if names.empty?

          names = names.map { |name| remove_prefix_and_suffix(name).inspect }
          line = "  castellan_versions #{names.join(", ")}"
          stream.puts
          stream.puts(line.size <= LONGEST_LINE ? line : "  castellan_versions(\n    #{names.join(",\n    ")}\n  )")
        end

        # Not by `ignore_tables`, which leaves tables out of structure.sql as well: the triggers there need the counters.
        def ignored?(table)
          COUNTERS.match?(table) || super
        end
      end

      # Fixtures are loaded with triggers disabled and then enabled; ours are to be enabled always.
      module ReferentialIntegrity
        def disable_referential_integrity(&block)
          result = super
          begin
            transaction(requires_new: true) { execute(PostgresTriggers.enable_always) }
          rescue ::ActiveRecord::ActiveRecordError
            nil # without the right to it, documents of these tables are not cached
          end
          result
        end
      end
    end
  end
end
