# frozen_string_literal: true

module Castellan
  class Document
    # Checks that the columns, associations and related resources of a declaration exist.
    #
    #
    #   DeclarationCheck.of(UserResource.definition)
    #   # raises DeclarationError: UserResource attribute :emial: users has no column emial (did you mean
    #   # email?) (app/resources/user_resource.rb:3)
    #
    # Runs once per resource, at boot (`Castellan.check!`, the Railtie,
    # `Castellan.app`) or before its first document.
    class DeclarationCheck
      MOST_FITTING = 3
      private_constant :MOST_FITTING

      # @return [Object] the rows adapter
      # @raise [DeclarationError]
      def self.of(definition)
        definition.derive(:checked_rows) do
          adapter_of(definition).tap do |adapter|
            check = new(definition, adapter)
            definition.several_tables? ? check.several_tables : (check.call if definition.model)
          end
        end
      end

      def self.adapter_of(definition)
        Rows.for(definition.several_tables? ? definition.types.first.model : definition.model)
      rescue DeclarationError => error
        raise error.of(definition.name)
      end
      private_class_method :adapter_of

      def initialize(definition, adapter)
        @definition = definition
        @adapter = adapter
        @foreign_keys = {}
        @aliases = {}
      end

      # @raise [DeclarationError] with the file, the line and the most similar name
      def call
        Array(@definition.id_column).each { |column| column!(@adapter, column, "id", @definition.id_location) }
        @definition.attributes.each_value { |attribute| attribute!(attribute) }
        types! if @definition.several_types?
        @definition.relationships.each_value { |relationship| relationship!(relationship) }
        @definition.links.each { |name, link| computed!(link, "link #{name.inspect}") }
        computed!(@definition.meta, "meta")
        @definition.sorts.each_value { |by| sort!(by) }
        @definition.filters.each_value { |by| filter!(by) unless by.is_a?(Proc) }
        @definition.know_columns(foreign_keys: @foreign_keys, aliases: @aliases)
        cursors! if @definition.paging&.cursors
        cursor_pages! if @definition.paging&.kind == :cursor
        counted! if @definition.caching
        identify(@definition, @adapter, [])
      end

      # Checks a resource with types in several tables, whose rows one statement reads.
      # @raise [DeclarationError]
      def several_tables
        location = @definition.itself.location
        adapters = @definition.types.to_h { |type| [type, DeclarationCheck.of(type)] }
        adapters.each { |type, adapter| of_several_tables!(type, adapter, location) }
        @definition.sorts.each_key { |name| one_kind!(name, adapters, location) }
        names = @definition.default_sort.to_s.split(",").map { |term| term.delete_prefix("-") }
        name = names.find { |one| !@definition.sorts.key?(one) } or return

        refuse("sort default: #{@definition.default_sort.inspect} names #{name}, which #{without(name)} cannot be sorted by", location)
      end

      private

      def without(name)
        @definition.types.reject { |type| type.sorts.key?(name) }.map(&:type).join(" and ")
      end

      def of_several_tables!(type, adapter, location)
        reason = if adapter.model.nil? then "has no model"
                 elsif !adapter.same_database?(@adapter) then "is in another database than #{@definition.types.first.name}"
                 elsif !key_of_one_order?(type, adapter) then "must have an id and a key of one column: a whole number, a UUID or text"
                 elsif adapter.dialect.reason then adapter.dialect.reason
                 elsif @definition.types.count { |one| one.type == type.type } > 1 then "has the type of another one, #{type.type}"
                 end
        refuse("types: #{type.name} #{reason}", location) if reason
      end

      # The list orders keys as numbers or as text; the type's own table must have the same order.
      def key_of_one_order?(type, adapter)
        keys = adapter.scopes.keys || [*type.id_column]
        return false if keys.size > 1 || type.id_column.is_a?(Array)

        %i[integer uuid text].include?(adapter.types.kind(keys.first)) && adapter.types.database_type(keys.first) != "citext"
      end

      # PostgreSQL converts the columns that it sorts together to one type.
      def one_kind!(name, adapters, location)
        kinds = adapters.map { |type, adapter|
          by = type.sorts.fetch(name)
          types = adapter.at(by.path).types
          types.kind(by.column) == :datetime ? types.database_type(by.column) : types.kind(by.column) || types.database_type(by.column)
        }.uniq
        return if kinds.one?

        refuse("types: they sort #{name} by columns of several types (#{kinds.join(", ")}); give one of the sorts another name", location)
      end

      # Also resolves the id column of related resources, whose own checks report errors. A resource without a
      # model has the models of the associations that refer to it.
      def identify(definition, adapter, seen)
        return if adapter.model.nil? || seen.include?([definition, adapter])

        seen << [definition, adapter]
        by_records = [*definition.id_column].any? { |column| adapter.columns.include?(column) && !adapter.types.identifies?(column) }
        definition.identify_by_records if by_records
        definition.relationships.each_value { |relationship| identify_related(relationship, adapter, seen) }
      end

      def identify_related(relationship, adapter, seen)
        relationship.definitions.each { |definition| identify(definition, Rows.related(adapter, relationship, definition), seen) }
      rescue DeclarationError
        nil
      end

      def attribute!(attribute)
        what = "attribute #{attribute.name.inspect}"
        computed!(attribute.condition&.by_row, "#{what}, if:", attribute.location)
        adapter = attribute.path.reduce(@adapter) { |level, name| to_one!(level, name, what, attribute.location) }
        attribute.columns&.each { |column| column!(adapter, column, what, attribute.location, attribute.path) }
        preloads!(attribute, what)
        version!(attribute) unless attribute.version.nil? || attribute.version.respond_to?(:call)
        Rows::PlanScopes.resources_along(@definition, @adapter, attribute.path, location: attribute.location)
      end

      # The table of `version:`, whose writes renew the values.
      def version!(attribute)
        table, column = attribute.version.is_a?(Hash) ? attribute.version.first : attribute.version
        what = "per_viewer #{attribute.name.inspect}, version:"
        columns = @adapter.columns_of(table) or
          refuse("#{what} the database of #{@adapter.table} has no table #{table}", attribute.location)
        return if column.nil? || columns.include?(column.to_sym)

        refuse("#{what} #{table} has no column #{column}#{Nearest.hint(column, columns)}", attribute.location)
      end

      # A superclass may name columns for the tables of its subclasses, so the column may be in any table.
      def counted!
        return unless @adapter.dialect.name == :postgres

        @definition.caching.by.each do |name|
          next if @adapter.columns.include?(name.to_sym) || @adapter.column_of_any_table?(name)

          refuse("cache by: no table has a column #{name}#{Nearest.hint(name, @adapter.columns)}", @definition.caching_location)
        end
      end

      def to_one!(adapter, name, what, location)
        association = association!(adapter, name, what, location)
        refuse("#{what}: #{name} is a to-many association, and from: walks to-one associations only", location) if association.to_many?
        refuse("#{what}: #{name} is polymorphic, and from: walks associations to one table only", location) if association.model.nil?

        Rows.for(association.model)
      end

      def types!
        location = @definition.itself.location
        unless @adapter.types.inheritance_column
          refuse("types: #{@adapter.table} has no column of single table inheritance; for types of several tables, leave model out",
                 location)
        end
        @definition.types.each do |type|
          refuse("types: #{type.name} must be a subclass of #{@definition.name}", location) unless type.resource < @definition.resource
          refuse("types: #{type.name} must be of #{@definition.model} or of a subclass", location) unless of_model?(type.model)
          refuse("types: #{type.name} has types itself; name those", location) if type.several_types?
          refuse("types: #{type.name} must have the id of #{@definition.name}", location) unless type.id_column == @definition.id_column
          refuse("types: two of them have the type #{type.type.inspect}; declare another, such as type \"cars\"", location) \
            if @definition.types.count { |one| one.type == type.type } > 1
        end
      end

      def of_model?(model)
        model.is_a?(Class) && model <= @definition.model
      end

      def computed!(computed, what, location = nil)
        computed&.columns&.each { |column| column!(@adapter, column, what, computed.location || location) }
      end

      def around!(relationship, what)
        [relationship.condition&.by_row, relationship.meta, *relationship.links.values].each do |computed|
          computed!(computed, what, relationship.location)
        end
      end

      # With single table inheritance, a subclass may declare the association.
      def preloads!(attribute, what)
        return if attribute.preloads.to_a.empty? || @adapter.types.inheritance_column

        names = attribute.preloads.flat_map { |name| name.is_a?(Hash) ? name.keys : [*name] }
        names.each { |name| association!(@adapter, name.to_sym, "#{what}, preloads", attribute.location) }
      end

      def relationship!(relationship)
        what = "#{relationship.macro} #{relationship.name.inspect}"
        around!(relationship, what)
        return relationship.definitions if relationship.block

        association = association!(@adapter, relationship.association_name, what, relationship.location)
        several!(relationship, what, association)
        if association.to_many? != relationship.to_many?
          right = association.to_many? ? "has_many" : "has_one or belongs_to"
          refuse("#{what}: #{relationship.association_name} is a #{association.macro} association; declare it as #{right}",
                 relationship.location)
        end
        named!(relationship, what, association)
        @foreign_keys[association.name] = association.foreign_keys if association.macro == :belongs_to
        relationship.definitions.each { |definition| same_table!(relationship, what, association, definition) }
      end

      # If no resource has the relationship's name, suggests the related model's resources.
      def named!(relationship, what, association)
        relationship.resources
      rescue DeclarationError
        model = association.model unless relationship.resource_named?
        fitting = model ? resources_of(model) : []
        raise if fitting.empty?

        refuse("#{what}: no resource is named like it, but #{relationship.association_name} is of #{model}: write resource: " \
               "#{fitting.first(MOST_FITTING).map(&:inspect).join(" or ")}", relationship.location)
      end

      # @return [Array<String>] names of the model's resources: first those of
      #   the same module, then the shortest
      def resources_of(model)
        names = Resource.descendants.filter_map { |resource| resource.name if resource.declarations.model == model }
        modules = @definition.name.to_s.split("::")
        names.sort_by { |name| [-name.split("::").zip(modules).take_while { |one, other| one == other }.size, name.size, name] }
      end

      # A shared `resource:` (`has_many :roles, :notes, resource: "NoteResource"`) does not fit all names. A
      # single relationship may have a resource of another table, such as a view.
      def same_table!(relationship, what, association, definition)
        table = table_of(definition.model)
        return if association.model.nil? || table.nil? || table_of(association.model) == table

        others = @definition.relationships.each_value.select { |other|
          other.location == relationship.location && !other.block && other.definitions.include?(definition)
        }
        return if others.none? { |other| table_of(@adapter.association(other.association_name)&.model) == table }

        refuse("#{what}: #{relationship.association_name} is of #{table_of(association.model)}, and #{definition.name} is of " \
               "#{table}; declare it by itself", relationship.location)
      end

      def table_of(model)
        Rows.for(model).table if model.is_a?(Class)
      end

      # The types of a polymorphic association cannot be derived from its name.
      def several!(relationship, what, association)
        return if relationship.named_several? || !association.model.nil?

        refuse("#{what}: #{association.reason}; name the resources of its types, resource: [PostResource, UserResource], " \
               "or [PostResource] if there is one", relationship.location)
      end

      def sort!(by)
        adapter = column_path!(by, "sort #{by.name}")
        type = adapter.types.database_type(by.column)
        return if adapter.dialect.orders?(type)

        refuse("sort #{by.name}: rows cannot be sorted by #{adapter.table}.#{by.column}: PostgreSQL has no order for #{type}", by.location)
      end

      def filter!(by)
        adapter = column_path!(by, "filter #{by.name}")
        return if adapter.types.kind(by.column) || adapter.types.enum(by.column)

        refuse("filter #{by.name}: the type of #{adapter.table}.#{by.column} cannot be compared with a client's text; give " \
               "filter(:#{by.name}) a block", by.location)
      end

      # A row's key is in its cursor and its id in the document, so they must be the same column.
      def cursors!
        return if [nil, [@definition.id_column]].include?(@adapter.scopes.keys)

        refuse("page cursors: an item's cursor needs the id to be the primary key", @definition.paging_location)
      end

      # Cursors contain the values of the sort columns, as the rows have them.
      def cursor_pages!
        reason = @adapter.dialect.reason
        refuse("page :cursor: #{reason}; page by number, or write page false if it is only included", @definition.paging_location) if reason
        names = @definition.default_sort.to_s.split(",").map { |term| term.delete_prefix("-") }
        name = (names - @definition.sorts_of_all).first or return comparable_cursors!(names)

        refuse("sort default: an if: hides #{name}, and cursors would contain its values; choose another order, or page by number",
               @definition.sorts[name].location)
      end

      # Otherwise each request without `sort`, or for a type of the key each request, would get a 400.
      def comparable_cursors!(names)
        ordered = names.map { |name| [@adapter.at(@definition.sorts[name].path), @definition.sorts[name].column] }
        ordered += (@adapter.scopes.keys || [*@definition.id_column]).map { |key| [@adapter, key] }
        adapter, column = ordered.find { |at, name| at.types.kind(name).nil? } || return

        refuse("page :cursor: pages cannot be cut by the values of #{adapter.table}.#{column}, whose type is not comparable with " \
               "text; choose another order, page by number, or write page false if it is only included", @definition.paging_location)
      end

      def column_path!(by, what)
        adapter = by.path.reduce(@adapter) { |level, name| to_one!(level, name, what, by.location) }
        column!(adapter, by.column, what, by.location, by.path)
        reason = Rows::ModelReasons.broken_path(@adapter, by.path)
        refuse("#{what}: #{by.key.join(".")} cannot be read in SQL: #{reason}", by.location) if reason
        Rows::PlanScopes.resources_along(@definition, @adapter, by.path, location: by.location)
        adapter
      end

      def association!(adapter, name, what, location)
        found = adapter.association(name) and return found
        known = adapter.associations
        refuse("#{what}: #{adapter.table} has no association #{name}#{Nearest.hint(name, known)}", location) unless known.include?(name)

        refuse("#{what}: #{name} leads to records that are in no table; read them in a block, { |record| record.#{name} }", location)
      end

      def column!(adapter, name, what, location, path = [])
        return aliased(adapter, name, path) if adapter.columns.include?(name)

        hint = method_hint(adapter, name, what) || Nearest.hint(name, adapter.columns)
        refuse("#{what}: #{adapter.table} has no column #{name}#{hint}", location)
      end

      # Gems define readers without a column, such as those of translations and encrypted attributes.
      def method_hint(adapter, name, what)
        return unless adapter.model.is_a?(Class) && adapter.model.method_defined?(name) && !adapter.associations.include?(name)

        instead = { "attribute :#{name}" => ": write attribute(:#{name}) { |record| record.#{name} }",
                    "filter #{name}" => ": give filter(:#{name}) a block" }
        ", but the model has a method of that name#{instead.fetch(what, ", which rows do not have")}"
      end

      def aliased(adapter, name, path)
        column = adapter.types.name(name).to_sym
        @aliases[path.empty? ? name : [*path, name]] = path.empty? ? column : [*path, column] unless column == name
      end

      def refuse(text, location)
        raise DeclarationError.new("#{@definition.name} #{text}", location: location)
      end
    end
  end
end
