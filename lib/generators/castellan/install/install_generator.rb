# frozen_string_literal: true

require "rails/generators"
require "rails/generators/active_record"
require "castellan"

module Castellan
  module Generators
    # Writes the initializer, and a migration with the version triggers that `cache :exact` needs.
    #
    #   bin/rails generate castellan:install   # an initializer and db/migrate/…_add_castellan_versions.rb
    #
    # May run again: it keeps the initializer, and skips tables that already have versions.
    class InstallGenerator < ::Rails::Generators::Base
      include ::ActiveRecord::Generators::Migration

      source_root File.expand_path("templates", __dir__)

      def write_initializer
        template "initializer.rb.tt", "config/initializers/castellan.rb", skip: true # a second run keeps what you have changed
      end

      def write_migration
        return say_status("versions", unsupported, :yellow) if unsupported

        say_status("versions", "left out: #{elsewhere.map(&:name).join(", ")}, in another database than ActiveRecord::Base", :yellow) \
          if elsewhere.any?
        return say_status("versions", no_tables, :yellow) if lines.empty?

        migration_template "versions.rb.tt", "db/migrate/#{migration_name}.rb"
        uncached.uniq.each do |name|
          say_status("versions", "not all documents of #{name} are cached: `puts #{name}.document.explain` prints why", :yellow)
        end
      end

      private

      # @return [String, nil] that the database has no triggers for versions
      def unsupported
        Versions::RawConnections.dialect(::ActiveRecord::Base.connection_db_config.adapter)
        nil
      rescue ConfigurationError => error
        error.message
      end

      def no_tables
        return "every table of a resource with `cache :exact` has them" if cached.any?

        "no resource declares `cache :exact` yet; run this again when one does. For Castellan.cache.fetch, write " \
          "`castellan_versions :posts` into a migration, with the tables that depends_on: names"
      end

      def migration_name
        first = Dir.glob(File.join(destination_root, "db/migrate/*_add_castellan_versions.rb")).empty?
        first ? "add_castellan_versions" : "add_castellan_versions_of_#{tables.join("_and_").gsub(/\W/, "_")[0, 60]}"
      end

      # @return [Array<String>] the arguments of each line; a table with a column of `cache by:`, or of the `version:` of
      #   per-viewer values, includes the column, one of a resource with `cache :notified` notifies
      def lines
        @lines ||= begin
          by = cached.flat_map { |resource| resource.definition.caching.by }.uniq
          groups = tables.group_by { |table| [(by & column_names(table)) | viewer_columns(table), notified.include?(table)] }
          groups.map do |(columns, notify), names|
            [*names.map { |table| table.match?(/\A[a-z_]\w*\z/) ? ":#{table}" : table.inspect },
             *("by: %i[#{columns.join(" ")}]" if columns.any?), *("notify: true" if notify)].join(", ")
          end
        end
      end

      # Not `Base.connection`, which applications may disallow (`permanent_connection_checkout`).
      def column_names(table)
        ::ActiveRecord::Base.connection_pool.with_connection { |connection| connection.columns(table).map(&:name) }
      end

      # @return [Array<String>] the tables of cached documents, with and without includes, that have no
      #   versions yet
      def tables
        @tables ||= tables_of_resources.values.flatten.uniq.sort.reject { |table| versions.installed?([table]) }
      end

      # @return [Array<String>] the tables of resources with `cache :notified`
      def notified
        @notified ||= tables_of_resources.select { |resource, _| resource.definition.caching.kind == :notified }.values.flatten
      end

      def tables_of_resources = @tables_of_resources ||= cached.to_h { |resource| [resource, tables_of(resource)] }

      # @return [Array<String>] names of resources with documents that cannot be cached
      def uncached = @uncached ||= []

      def cached = declared.first

      # @return [Array<Class>] resources whose tables ActiveRecord::Base's connection does not have
      def elsewhere = declared.last

      def declared
        @declared ||= begin
          ::Rails.application.eager_load!
          Resource.descendants.select { |resource| resource.name && resource.declarations.model && resource.definition.caching }
                  .partition { |resource| versions.of?(resource.declarations.model) }
        end
      end

      def tables_of(resource)
        tables = viewer_versions(resource).filter_map { |version| (version.is_a?(Hash) ? version.each_key.first : version)&.to_s }
        tables + [nil, *resource.definition.relationships.keys].flat_map { |name| tables_with(resource, name) }
      rescue StandardError => error # a scope may need a viewer, who is not known here
        say_status("versions", "#{resource.name} raises #{error.class} without a viewer: also add the tables that " \
                               "`#{resource.name}.document(viewer: viewer).explain` names (#{error.message})", :yellow)
        [resource.declarations.model.table_name, *tables]
      end

      # If code may read any table, asks for the members one by one, because documents without that code can be cached.
      def tables_with(resource, name)
        known = tables_of_document(resource, name)
        return known if known

        uncached << resource.name
        [*name || resource.definition.attributes.keys].flat_map do |member|
          tables_of_document(resource, name, fields: { resource.definition.type.to_sym => [member] }).to_a
        end
      end

      def tables_of_document(resource, name, **fields)
        resource.document(query: name ? { "include" => name.to_s } : {}, **fields).rendering.tables
      rescue BadRequest # clients may not include this relationship
        []
      end

      # @return [Array<String, Symbol, Hash>] tables, or tables with the viewer's column, that `version:` of the per-viewer
      #   values of a resource, and of those that its relationships lead to, names
      def viewer_versions(resource)
        [resource.definition, *resource.definition.relationships.each_value.flat_map(&:definitions)]
          .flat_map { |definition| definition.attributes.each_value.filter_map(&:version) }.uniq.reject { |one| one.respond_to?(:call) }
      end

      # @return [Array<String>] the columns that `version: { table => column }` of per-viewer values names
      def viewer_columns(table)
        cached.flat_map { |resource| viewer_versions(resource) }.grep(Hash)
              .filter_map { |version| version.each_value.first.to_s if version.each_key.first.to_s == table }.uniq
      end

      def versions = @versions ||= Versions::ExactVersions.new(::ActiveRecord::Base)
    end
  end
end
