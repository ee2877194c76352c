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
    # May run again: it skips tables that already have versions.
    class InstallGenerator < ::Rails::Generators::Base
      include ::ActiveRecord::Generators::Migration

      source_root File.expand_path("templates", __dir__)

      def write_initializer
        template "initializer.rb.tt", "config/initializers/castellan.rb"
      end

      def write_migration
        say_status("versions", "left out: #{elsewhere.map(&:name).join(", ")}, in another database than ActiveRecord::Base", :yellow) \
          if elsewhere.any?
        return say_status("versions", no_tables, :yellow) if lines.empty?

        migration_template "versions.rb.tt", "db/migrate/#{migration_name}.rb"
      end

      private

      def no_tables
        return "every table of a resource with `cache :exact` has them" if cached.any?

        "no resource declares `cache :exact` yet; run this again when one does"
      end

      def migration_name
        first = Dir.glob(File.join(destination_root, "db/migrate/*_add_castellan_versions.rb")).empty?
        first ? "add_castellan_versions" : "add_castellan_versions_of_#{tables.join("_and_").gsub(/\W/, "_")[0, 60]}"
      end

      # @return [Array<String>] the arguments of each line; a table with a column of `cache by:` includes the
      #   column, one of a resource with `cache :notified` notifies
      def lines
        @lines ||= begin
          by = cached.flat_map { |resource| resource.definition.caching.by }.uniq
          connection = ::ActiveRecord::Base.connection
          groups = tables.group_by { |table| [by & connection.columns(table).map(&:name), notified.include?(table)] }
          groups.map do |(columns, notify), names|
            [*names.map { |table| table.match?(/\A[a-z_]\w*\z/) ? ":#{table}" : table.inspect },
             *("by: %i[#{columns.join(" ")}]" if columns.any?), *("notify: true" if notify)].join(", ")
          end
        end
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

      # A scope may need a viewer, who is not known here.
      def tables_of(resource)
        [nil, *resource.definition.relationships.keys].flat_map { |name| tables_with(resource, name) }
      rescue StandardError => error
        say_status("versions", "#{resource.name} raises #{error.class} without a viewer: also add the tables that " \
                               "`#{resource.name}.document(viewer: viewer).explain` names", :yellow)
        [resource.declarations.model.table_name]
      end

      def tables_with(resource, name)
        resource.document(query: name ? { "include" => name.to_s } : {}).rendering.tables.to_a
      rescue BadRequest # clients may not include this relationship
        []
      end

      def versions = @versions ||= Versions::ExactVersions.new(::ActiveRecord::Base)
    end
  end
end
