# frozen_string_literal: true

module Castellan
  class Resource
    # Holds the complete, checked declaration of a resource. Frozen and shared by all threads.
    #
    #   definition = UserResource.definition
    #   definition.type                       # => "users"
    #   definition.attributes[:employee_id]   # => #<struct Attribute source=:path …>
    #
    # Does not use the database; {Document::DeclarationCheck} compares the declaration with it at boot.
    class Definition
      include BoundedCache::Derived

      NAME = /\A[[:alnum:]](?:[-_[:alnum:]]*[[:alnum:]])?\z/
      NO_TYPES = [].freeze
      NOTHING = {}.freeze
      private_constant :NAME, :NO_TYPES, :NOTHING

      # @return [Class] the resource
      # @return [String] its name, for messages
      # @return [Object, nil] model, dataset; nil for a resource of plain objects
      # @return [String] JSON:API type
      # @return [String, nil] "path:line" of its declaration
      # @return [Hash{Symbol => Attribute}]
      # @return [Hash{Symbol => Relationship}]
      # @return [Hash{Symbol => Array<Symbol>}] representations
      # @return [Hash{Symbol => Computed}] links of each resource object
      # @return [Computed, nil] its meta object
      # @return [Proc, nil] returns the inputs of its code besides its columns, see {Resource.vary_on}
      # @return [Declarations::Scope, nil] which rows a viewer may see
      # @return [Integer] the depth of include that clients may request
      # @return [Writing] what clients may write
      # @return [String, nil] "path:line" of the last `writable`
      # @return [String, nil] "path:line" of `page`
      # @return [BoundedCache] the compiled plans, see {Plan.compile}
      # @return [Boolean, nil] see {Resource.together}
      # @return [Hash, nil] see {Resource.cache_control}
      # @return [String, nil] "path:line" of `cache`
      # @return [String, nil] "path:line" of `cache_control`
      # @return [Symbol] one of {KeyTransform.names}
      # @return [Relationship, nil] from each row to itself as a resource of its type, see {Resource.types}
      attr_reader :resource, :name, :model, :type, :id_location, :attributes, :relationships, :representations,
                  :default_sort, :paging, :caching, :document_format, :members, :links, :meta, :variation, :scope, :include_depth,
                  :writing, :writing_location, :paging_location, :plans, :together, :itself, :cache_control,
                  :caching_location, :cache_control_location, :transform

      def initialize(resource, declarations)
        @resource = resource
        @name = resource.name || "an unnamed resource"
        @derived = BoundedCache.new(limit: 1_000)
        @plans = BoundedCache.new # one for each shape that clients request
        @model = declarations.model
        @type = (declarations.type || plural_name).freeze
        @id_column = declarations.id_column || primary_key
        @id_location = declarations.locations[:id]
        @transform = declarations.transform
        @url = url(declarations)
        @attributes = declarations.attributes.to_h { |attribute, options| [attribute, attribute(attribute, **options)] }.freeze
        @relationships = declarations.relationships.to_h { |name, options| [name, relationship(name, **options)] }.freeze
        @members = (@attributes.keys + @relationships.keys).freeze
        @itself = Relationship.to_types(@resource, declarations.types, declarations.locations[:types]) if declarations.types
        copy_policies(declarations)
        check_type(declarations.locations[:type])
        check_names
        check_representations(declarations.locations)
        check_default_sort(declarations.locations[:sort])
        check_scope
        check_several_tables(declarations) if several_tables?
        freeze
      end

      # @return [Symbol, Array<Symbol>] the id's column. An Array if records must be read: the columns of a
      #   composite key, or one column whose row value differs from the reader's, see {#identify_by_records}
      def id_column
        @derived[:id_column] || @id_column
      end

      # Called at boot for enums, times, decimals and encrypted columns: the id
      # is the value of the record's reader.
      def identify_by_records
        derive(:id_column) { [@id_column].flatten.freeze }
      end

      # Called when the declaration is checked, because filters and sorts by a foreign key show a relationship, and
      # those by an alias a column.
      # @param foreign_keys [Hash{Symbol => Array<Symbol>}] of belongs_to associations, with the type of polymorphic ones
      # @param aliases [Hash{Symbol, Array<Symbol> => Symbol, Array<Symbol>}] the columns of declared aliases
      #   (`alias_attribute`), in the form of {ColumnPath#key}
      def know_columns(foreign_keys:, aliases:)
        derive(:foreign_keys) { foreign_keys.freeze }
        derive(:aliases) { aliases.freeze }
      end

      # @return [Boolean] whether all Ruby code of the declaration depends on
      #   its columns only, see {Resource.pure}
      def pure?
        @pure
      end

      # @param member [String] a member's name in a document, or the declared name
      # @return [Symbol, nil] the declared name
      def member_named(member)
        @names[member]
      end

      # @return [Array<Definition>] the types of the rows, see {Resource.types}; empty without `types`
      def types
        itself ? itself.definitions : NO_TYPES
      end

      # @return [Boolean] whether its scope, or that of one of its types, may hide rows
      def hides_rows? = !scope.nil? || types.any?(&:scope)

      # @return [Boolean] whether its documents are of several types
      def several_types?
        !itself.nil?
      end

      # @return [Boolean] whether its types are in several tables: it then has no model of its own
      def several_tables?
        several_types? && model.nil?
      end

      # @return [Hash{String => Proc, ColumnPath}] filters; for several tables, those that all types have
      def filters
        several_tables? ? derive(:shared_filters) { shared(&:filters) } : @filters
      end

      # @return [Hash{String => ColumnPath}] sortable names and their columns; for
      #   several tables, those that all types have
      def sorts
        several_tables? ? derive(:shared_sorts) { shared(&:sorts) } : @sorts
      end

      # @return [Array<Definition>] the types in which rows are written: {#types}, or this one
      def written_as
        itself ? types : [self]
      end

      # @return [Array<Definition>] the resources that list this one in `types` and
      #   whose different scope also applies
      def scopes_around
        derive(:scopes_around) do
          above = resource.ancestors.take_while { |one| one != Resource }.grep(Class).drop(1)
          above.select { |one| one.declarations.types }.map(&:definition)
               .select { |one| one.scope && !one.scope.equal?(scope) && one.types.include?(self) }.freeze
        end
      end

      # @return [Array<Definition>] the types in which rows are written, and
      #   all that their relationships reach
      def reachable
        derive(:reachable) { walk([]).freeze }
      end

      # @return [Boolean] whether any members are hidden from some viewers in all rows
      def for_viewers?
        conditional_members.any?
      end

      # @return [Array<Symbol>] the members that are hidden from some viewers in all rows
      def conditional_names
        conditional_members.map(&:name)
      end

      # @param viewer [Object, nil]
      # @return [Array<Symbol>] the members that are hidden from this viewer
      def hidden_from(viewer)
        conditional_members.reject { |member| member.condition.shown?(viewer) }.map(&:name)
      end

      # Lists the filters that reveal nothing that an `if:` hides from the client: not those by hidden
      # members, or by columns that only hidden members write.
      # @param hidden [Hash{Definition => Array<Symbol>}] the members that are hidden from the viewer
      # @return [Array<String>]
      def open_filters(hidden = NOTHING) = all_open(hidden, &:filters)

      # @param hidden see {#open_filters}
      # @return [Array<String>] the names of sorts that reveal nothing hidden
      def open_sorts(hidden = NOTHING) = all_open(hidden, &:sorts)

      # @return [Array<String>] the filters that every viewer may use, for texts that do not depend on the viewer
      def filters_of_all = open_filters(own_conditional_names)

      # @return [Array<String>] the sorts that every viewer may use
      def sorts_of_all = open_sorts(own_conditional_names)

      # @param viewer [Object, nil]
      # @return [Hash{Definition => Array<Symbol>}] the hidden members of its own type and of its {#types}
      def own_hidden_from(viewer)
        [self, *types].to_h { |definition| [definition, definition.hidden_from(viewer)] }
      end

      protected

      # @yieldreturn [Hash] the definition's filters or sorts
      def all_open(hidden, &declared)
        return yield(self).keys & types.map { |type| type.all_open(hidden, &declared) }.reduce(:&) if several_tables?

        names, closed = closed(hidden)
        yield(self).reject { |name, by| names.include?(name.to_sym) || closed.call(by) }.keys
      end

      # @return [Array<Symbol, Array<Symbol>>] the columns that only these members write; the id is always written
      def columns_of_only(names)
        of, others = attributes.each_value.partition { |attribute| names.include?(attribute.name) }
        shown = unaliased([*others.flat_map(&:column_keys), *id_column])
        unaliased(of.flat_map(&:column_keys)) + columns_of_relationships(names) - shown
      end

      # @param names [Array<Symbol>] members that are hidden as well
      def columns_hidden_in_rows(names)
        in_rows = derive(:hidden_in_rows) do
          [*attributes.values, *relationships.values].select { |member| member.condition&.by_row }.map(&:name).freeze
        end
        in_rows.empty? ? in_rows : columns_of_only(in_rows | names)
      end

      def walk(seen)
        return seen if seen.include?(self)
        return types.each { |type| type.walk(seen) } && seen if several_types?

        seen << self
        relationships.each_value { |relationship| relationship.definitions.each { |definition| definition.walk(seen) } }
        seen
      end

      private

      # @return [Array<Symbol, Array<Symbol>>] the foreign keys that only these relationships write, and the paths of
      #   filters and sorts that begin with their associations
      def columns_of_relationships(names)
        of, others = relationships.each_value.partition { |relationship| names.include?(relationship.name) }
                                  .map { |some| some.map(&:association_name) }
        of -= others
        return NO_TYPES if of.empty?

        paths = derive(:compared_paths) { [*filters.values, *sorts.values].grep(ColumnPath).reject(&:own?).map(&:key).freeze }
        keys = @derived[:foreign_keys] || {}
        shown = [*keys.values_at(*others).flatten, *unaliased([*id_column])]
        keys.values_at(*of).flatten.compact - shown + unaliased(paths.select { |path| of.include?(path.first) })
      end

      # @param keys [Array<Symbol, Array<Symbol>>] see {ColumnPath#key}
      # @return [Array<Symbol, Array<Symbol>>] with the columns of aliases
      def unaliased(keys)
        aliases = @derived[:aliases] || NOTHING
        aliases.empty? ? keys : keys.map { |key| aliases.fetch(key, key) }
      end

      def own_conditional_names
        [self, *types].to_h { |definition| [definition, definition.conditional_names] }
      end

      # Each type compares its own column or calls its own block.
      def shared
        all = types.map { |type| yield type }
        names = all.map(&:keys).reduce(:&).select { |name| all.map { |one| one[name].class }.uniq.size == 1 }
        names.to_h { |name| [name, all.first[name].is_a?(Proc) ? all.first[name] : ColumnPath.new(name, [], name.to_sym, nil)] }.freeze
      end

      # @return [Array(Array<Symbol>, Proc)] the hidden members, and whether a filter
      #   or sort by a column reveals values
      def closed(hidden)
        own = [self, *types]
        names = own.flat_map { |definition| hidden.fetch(definition, NO_TYPES) }.uniq
        columns = own.flat_map { |definition| definition.columns_of_only(names) }.uniq
        in_rows = own.flat_map { |definition| definition.columns_hidden_in_rows(names) }.uniq
        reveals = ->(by) { columns.intersect?(unaliased([by.key])) || (!by.reveals && in_rows.intersect?(unaliased([by.key]))) }
        [names, ->(by) { !by.is_a?(Proc) && reveals.call(by) }]
      end

      def conditional_members
        [*attributes.values, *relationships.values].select { |member| member.condition&.by_viewer }
      end

      def copy_policies(declarations)
        @links = { **(@url ? { self: Computed.of(@url) } : {}), **declarations.links }.freeze
        @meta = declarations.meta
        @scope = declarations.scope
        @include_depth = declarations.include_depth
        @writing = declarations.writing
        @writing_location = declarations.locations[:writable]
        @representations = declarations.representations.dup.freeze
        @filters = declarations.filters.to_h { |name, by| [name, by.is_a?(Proc) ? by : column_path(name, by)] }.freeze
        @sorts = declarations.sorts.to_h { |name, by| [name, column_path(name, by)] }.freeze
        @default_sort = declarations.default_sort
        @paging = declarations.paging
        @paging_location = declarations.locations[:page]
        @caching = declarations.caching
        @caching_location = declarations.locations[:cache]
        @document_format = declarations.document_format
        @pure = declarations.pure ? true : false
        @variation = declarations.variation
        @together = declarations.together
        @cache_control = declarations.cache_control
        @cache_control_location = declarations.locations[:cache_control]
        @names = (@attributes.values + @relationships.values).to_h { |member| [member.key, member.name] }.freeze
      end

      def attribute(name, location:, from:, columns:, viewer:, block:, **others)
        source, path, columns = source_of(name, from, columns, viewer, block, location)
        Attribute.new(name: name, key: KeyTransform.call(name, @transform), source: source, path: path.freeze,
                      columns: columns.freeze, block: block, location: location, **others)
      end

      def source_of(name, from, columns, viewer, block, location)
        if viewer then [:viewer, [], []]
        elsif from then [:path, *path_of(name, from, location)]
        elsif columns then [:computed, [], Array(columns).map(&:to_sym)]
        elsif block then [:record, [], nil]
        else [:column, [], [name]]
        end
      end

      # Without `from:`, the name may be an attribute that has one; `id` is the id in documents.
      def column_path(name, declared)
        attribute = @attributes[name.to_sym] unless declared.from
        *path, column = steps(declared.from) if declared.from
        path, column = attribute.path, attribute.columns.first if attribute&.source == :path
        column ||= @id_column if name == "id" && @id_column.is_a?(Symbol)
        ColumnPath.new(name, path || [], column || name.to_sym, declared.location, declared.reveals)
      end

      def steps(from)
        from.is_a?(Hash) ? flatten(from) : from.to_s.split(".").map(&:to_sym)
      end

      def path_of(name, from, location)
        *path, column = steps(from)
        return [path, [column]] if path.any? || column != name.to_sym

        refuse("attribute #{name.inspect}: from: #{from.inspect} is the attribute itself; leave from: out", location)
      end

      def flatten(from)
        from.flat_map { |key, rest| [key.to_sym, *(rest.is_a?(Hash) ? flatten(rest) : rest.to_sym)] }
      end

      def relationship(name, **options)
        key = KeyTransform.call(name, @transform)
        found = Relationship.new(name: name, key: key, owner: @resource, **options)
        return found unless @url

        path = ERB::Util.url_encode(key)
        links = { self: "#{@url}/relationships/#{path}", related: ("#{@url}/#{path}" if found.related?) }.compact
        links = links.transform_values { |link| Computed.of(link) }.merge(found.links)
        Relationship.new(name: name, key: key, owner: @resource, **options, links: links.freeze)
      end

      def url(declarations)
        at = declarations.self_links or return
        unless @id_column.is_a?(Symbol)
          refuse("self_links needs an id of one column; write a link with each column, such as link :self, \"/orders/{shop_id}_{id}\"",
                 declarations.locations[:self_links])
        end

        "#{at == :type ? "/#{ERB::Util.url_encode(@type)}" : at}/{#{@id_column}}"
      end

      def check_representations(locations)
        @representations.each do |representation, only|
          wrong = only.find { |member| !@members.include?(member) } or next
          refuse("representation #{representation.inspect} names #{wrong.inspect}, which is not declared#{Nearest.hint(wrong, @members)}",
                 locations[[:representation, representation]])
        end
      end

      # JSON:API 1.1, "Identification": a type is written like a member name.
      def check_type(location)
        return if location.nil? || NAME.match?(type)

        refuse("type #{type.inspect}: write letters and digits, - and _ between", location)
      end

      # JSON:API 1.1, "Member Names" and "Fields".
      def check_names
        (@attributes.values + @relationships.values).group_by(&:key).each do |key, members|
          names = members.map { |member| member.name.inspect }.join(" and ")
          wrong = if members.size > 1 then "#{names} would both be written as #{key.inspect}"
                  elsif reserved?(key, members)
                    "#{names} would be written as #{key.inspect}, the name of what identifies a resource; declare it with `#{key} …`"
                  elsif !NAME.match?(key) then "#{key.inspect} cannot be the name of a member: write letters and digits, - and _ between"
                  end
          refuse(wrong, members.last.location) if wrong
        end
      end

      # Nested JSON has no type of its own.
      def reserved?(key, members)
        key == "id" || (key == "type" && !(document_format == :nested && @attributes.value?(members.first)))
      end

      def check_several_tables(declarations)
        own = { "attributes" => @attributes, "relationships" => @relationships, "filters" => @filters, "sorts" => @sorts,
                "links" => @links, "writable members" => @writing.rules, "meta" => [*@meta] }.find { |_, declared| declared.any? } or return
        refuse("has types and no model, so its types declare the #{own.first}", declarations.locations[:types])
      end

      # {Document::DeclarationCheck} checks the default of several tables.
      def check_default_sort(location)
        return if several_tables?

        default_sort.to_s.split(",").each do |term|
          name = term.delete_prefix("-")
          next if sorts.key?(name)

          refuse("sort default: #{default_sort.inspect} names #{name}, which cannot be sorted by#{Nearest.hint(name, sorts.keys)}",
                 location)
        end
      end

      def check_scope
        refuse("scope needs a model: write `model Task` in the resource's body", scope.location) if scope && model.nil?
      end

      def refuse(text, location)
        raise DeclarationError.new("#{name} #{text}", location: location)
      end

      def plural_name
        return named_type unless model
        return model.model_name.plural if model.respond_to?(:model_name)
        return Inflector.pluralize(Inflector.underscore(model.name.split("::").last)) if model.is_a?(Class)
        return model.first_source_alias.to_s if model.respond_to?(:first_source_alias)

        model.to_s
      end

      def named_type
        base = @resource.name or raise DeclarationError, "a resource without a name and a model needs a type: write `type \"users\"` in it"

        Inflector.pluralize(Inflector.underscore(base.split("::").last.delete_suffix("Resource")))
      end

      def primary_key
        key = model.respond_to?(:primary_key) ? model.primary_key : :id
        return key.map(&:to_sym).freeze if key.is_a?(Array)
        return key.to_sym if key

        raise DeclarationError, "#{name}: #{model} has no primary key (a view has none): declare the column that identifies a row, " \
                                "`id :column`"
      end
    end
  end
end
