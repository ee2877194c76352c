# frozen_string_literal: true

module Castellan
  module Plan
    # Parses the shape (include, fields, format) and the values (filter, sort, page) of a request. Frozen.
    #
    #   Request.parse(definition, "include" => "roles", "sort" => "-last_name", "page" => { "size" => "20" })
    #   Request.new(definition, include: :roles, fields: { users: [:email] })
    #
    # Unknown names raise {BadRequest} with the parameter, the wrong part and the allowed names. Other
    # parameters are ignored here; {Serve::Parameters} rejects them.
    class Request
      # The values of `page[after]`, `page[before]` and `page[size]`, and the
      # `order` with which cursors are checked.
      Place = Struct.new(:after, :before, :size, :order) do
        # @return [Array<String, Integer, nil>] parts of a cache key
        def key = [after&.text(order), before&.text(order), size]
      end

      FAMILIES = %w[include fields filter sort page].freeze
      # Pages that begin at a higher row raise BadRequest.
      MAX_OFFSET = 10_000_000
      # In bytes; longer parameters are parsed in each request.
      LONGEST = 1_000
      NO_VALUES = {}.freeze
      NOTHING = [].freeze
      VALUES = %i[filter sort page].freeze
      PAGES = { number: %w[number size], cursor: %w[size after before] }.freeze
      private_constant :LONGEST, :NO_VALUES, :NOTHING, :VALUES, :PAGES

      # @return [Hash{Symbol => Hash}] see {IncludeTree}
      # @return [Fields]
      # @return [Symbol] :json_api or :nested
      # @return [Hash{String => Array<String>, Hash}] filters and their values; for columns see {Comparisons}
      # @return [Array<Array(Symbol, Symbol)>] columns, or the paths to them, with :asc or :desc
      # @return [Array(Integer, Integer), nil] page number and size; the number is 1 for cursor pages
      # @return [Place, nil] the page of the Cursor Pagination profile, if the resource has cursor pages
      # @return [Array<Symbol>] which of filter, sort and page were given; the
      #   others have the declaration's defaults
      # @return [String] canonical string of the shape, without the values
      attr_reader :include, :fields, :format, :filters, :sort, :page, :cursor, :chosen, :signature

      # @param query [Hash, #to_unsafe_h, nil] the framework's raw parameters
      # @param options fixed by the application; they take precedence over the query
      # @return [Request] the same object for all requests of a shape without values
      # @raise [BadRequest]
      # @raise [ConfigurationError] for an unknown representation or format
      def self.parse(definition, query, **options)
        return plain(definition) if options.empty? && query.is_a?(Hash) && query.empty?

        query = shown(query)
        unless query.nil? || query.is_a?(Hash)
          raise BadRequest, "query: must be a Hash of parameters, got #{query.class}; parse a query string with " \
                            "Rack::Utils.parse_nested_query"
        end

        fixed = options.compact
        options = query.nil? || query.empty? ? fixed : asked_of(query).merge(fixed)
        options.transform_values! { |asked| shown(asked) }
        return plain(definition) if options.empty?

        by_client = options.keys - fixed.keys
        return new(definition, **options, by_client: by_client) if VALUES.any? { |family| options.key?(family) }

        known = definition.derive(by_client.include?(:include) ? [:known_requests, *by_client] : :known_requests) { BoundedCache.new }
        known[options] || new(definition, **options, by_client: by_client).tap do |request|
          known.fetch(copy(options)) { request } if options.to_s.bytesize <= LONGEST
        end
      end

      # The caller may change the parameters later.
      def self.copy(value)
        case value
        when Hash then value.to_h { |name, inner| [copy(name), copy(inner)] }.freeze
        when Array then value.map { |inner| copy(inner) }.freeze
        when String then -value
        else value
        end
      end
      private_class_method :copy

      def self.plain(definition) = definition.derive(:plain_request) { new(definition) }
      private_class_method :plain

      # @param parameters [Object] for example `ActionController::Parameters`
      # @return [Object] a Hash, if the framework has its own class for parameters
      def self.shown(parameters) = parameters.respond_to?(:to_unsafe_h) ? parameters.to_unsafe_h : parameters
      private_class_method :shown

      def self.asked_of(query)
        FAMILIES.to_h { |family| [family.to_sym, query[family] || query[family.to_sym]] }.compact
      end
      private_class_method :asked_of

      # @param by_client [Array<Symbol>] the parameters that a client sent; clients
      #   have fewer rights than the application
      def initialize(definition, include: nil, fields: nil, filter: nil, sort: nil, page: nil, representation: nil, format: nil,
                     by_client: NOTHING)
        @definition = definition
        @by_client = by_client
        only = representation && only(representation)
        @fields = Fields.parse(definition, fields, only: only)
        @fixed = fields && by_client.include?(:include) && !by_client.include?(:fields) ? true : false
        @include = IncludeTree.parse(definition, include, only: only, client: of_client?(include), fixed: @fixed ? @fields : nil)
        @sent = !include.nil? && of_client?(include)
        @format = format ? format!(format) : definition.document_format
        @filter_parameters = NO_VALUES
        @filters = filters_of(filter)
        @sort = sort_of(sort || definition.default_sort)
        @page = page_of(page)
        @cursor = place(page) if definition.paging&.kind == :cursor
        @chosen = { filter: filter, sort: sort, page: page }.compact.keys.freeze
        refuse_revealing(NO_VALUES)
        @signature = sign
        freeze
      end

      # Removes the members that an `if:` hides from a viewer: they are neither written nor included.
      # @param viewer [Object, nil]
      # @return [Request]
      def seen_by(viewer)
        hidden = [@definition, *@definition.reachable].uniq.to_h { |definition| [definition, definition.hidden_from(viewer)] }
        hidden.reject! { |_, names| names.empty? }
        hidden.empty? ? self : dup.tap { |request| request.send(:hide, hidden) }.freeze
      end

      # JSON:API 1.1, "Inclusion of Related Resources".
      # @return [Boolean] whether a client sent an `include` that includes nothing; the document then has an empty `included`
      def includes_nothing? = @sent && include.empty?

      # Another type may have a relationship of this name that can be included.
      # @param name [Symbol] a relationship that {#include} has
      # @return [Boolean] whether it is included for records of this type
      def included?(definition, name)
        @fixed ? fields.of(definition).include?(name) : !fields.hidden?(definition, name)
      end

      # @param name [String] a filter as declared
      # @return [String] as the client wrote it, such as `filter[created-at]`, for error messages
      def filter_parameter(name) = @filter_parameters.fetch(name) { "filter[#{name}]" }

      # @param type [Resource::Definition] one type of a collection of several tables
      # @return [Request] for the type's rows, with the same filters and order
      def for_type(type)
        dup.tap { |request| request.send(:narrow_to, type) }.freeze
      end

      private

      def narrow_to(type)
        @sort = sort.map { |column, direction| [type.sorts.fetch(column.name).key, direction] }
        @definition = type
        @include = NO_VALUES
        @sent = false
        @fields = Fields.parse(type, nil)
        @page = @cursor = nil
        @signature = sign
      end

      # A String comes from a client, even if the application passes it on: `include: params[:include]`.
      def of_client?(include) = include.is_a?(String) || @by_client.include?(:include)

      def hide(hidden)
        refuse_revealing(hidden)
        @fields = fields.without(hidden)
        @include = pruned(@definition.written_as, include, hidden)
        @signature = signed
      end

      # A filter by a hidden member, or an order by its column, would reveal its values.
      def refuse_revealing(hidden)
        refuse_hidden_filters(@definition.open_filters(hidden)) if @by_client.include?(:filter)
        refuse_hidden_order(@definition.open_sorts(hidden)) if @by_client.include?(:sort)
      end

      def refuse_hidden_filters(open)
        filters.each_key { |name| refuse_filter(filter_parameter(name), name, open) unless open.include?(name) }
      end

      # Two names may refer to one column.
      def refuse_hidden_order(open)
        keys = @definition.sorts.values_at(*open).map(&:key)
        column, = sort.find { |one, _| !keys.include?(one) }
        refuse_sort(@definition.sorts.find { |_, by| by.key == column }.first, open) if column
      end

      def pruned(definitions, tree, hidden)
        tree.each_with_object({}) { |(name, below), left|
          related = definitions.filter_map { |definition| definition.relationships[name] unless hidden[definition]&.include?(name) }
          left[name] = pruned(related.flat_map(&:definitions).uniq, below, hidden) if related.any?
        }.freeze
      end

      def only(representation)
        @definition.representations.fetch(representation.to_sym) do
          raise ConfigurationError, "#{@definition.name} has no representation #{representation.inspect}" \
                                    "#{Nearest.hint(representation, @definition.representations.keys)}"
        end
      end

      def format!(format)
        return format if %i[json_api nested].include?(format)

        raise ConfigurationError, "format: #{format.inspect} is not known; write :json_api or :nested"
      end

      def filters_of(filter)
        return NO_VALUES if filter.nil?

        refuse("filter", "filter must name what to filter by: filter[name]=value") unless filter.is_a?(Hash)
        filter.to_h do |name, values|
          name = name.to_s
          parameter = "filter[#{Parameter.shown(name)}]"
          declared = declared(@definition.filters, name) || refuse_filter(parameter, name, @definition.filters_of_all)
          @filter_parameters = { **@filter_parameters, declared => parameter }.freeze
          by_block = @definition.filters.fetch(declared).is_a?(Proc)
          [declared, by_block ? Parameter.list(parameter, values).freeze : Comparisons.parse(parameter, values)]
        end.freeze
      end

      def refuse_filter(parameter, name, allowed)
        refuse(parameter, "#{@definition.type} cannot be filtered by #{quoted(name)}#{unshared(name, &:filters) || hint_of(name, allowed)}")
      end

      # Only the first occurrence of a column counts.
      def sort_of(sort)
        return [] if sort.nil? || sort == ""

        names = Parameter.list("sort", sort, gaps: true)
        names.map { |name| [sort_column(name.delete_prefix("-")), name.start_with?("-") ? :desc : :asc] }.uniq(&:first)
      end

      def sort_column(name)
        declared = declared(@definition.sorts, name) || refuse_sort(name, @definition.sorts_of_all)
        @definition.sorts.fetch(declared).key
      end

      # Clients may write a name as declared, with dashes, or like the member.
      def declared(names, name)
        return name if names.key?(name)

        names.each_key.find { |key| Resource::KeyTransform.call(key, :dash) == name || written(key) == name }
      end

      def refuse_sort(name, allowed)
        refuse("sort", "#{@definition.type} cannot be sorted by #{quoted(name)}#{unshared(name, &:sorts) || hint_of(name, allowed)}")
      end

      # For several tables, only names that all types have are allowed.
      def unshared(name)
        return unless @definition.several_tables?

        types = @definition.types.select { |type| yield(type).key?(name) }
        ", which only #{types.map(&:type).join(" and ")} can" if types.any? && types.size < @definition.types.size
      end

      def hint_of(name, allowed) = hint(name, allowed.map { |one| written(one) })
      def written(name) = Resource::KeyTransform.call(name, @definition.transform)

      def page_of(page)
        paging = @definition.paging
        if page == false && paging
          raise ConfigurationError, "page: false: #{@definition.name} declares pages, so a document is one of them; " \
                                    "for all records, write a subclass with `page false` and render that; if the records are given, " \
                                    "leave it out"
        end
        refuse("page", "#{@definition.type} is not divided into pages") if page && !paging
        return paging && [1, paging.size] unless page

        refuse("page", "page must be #{PAGES.fetch(paging.kind).map { |name| "page[#{name}]" }.join(" and ")}") unless page.is_a?(Hash)
        page = page.transform_keys(&:to_s)
        known_page(page, paging)
        paging.kind == :cursor ? [1, cursor_size(page, paging)] : checked_page(page, paging)
      end

      def known_page(page, paging)
        names = PAGES.fetch(paging.kind)
        other = page.keys.find { |name| !names.include?(name) } or return

        refuse("page[#{Parameter.shown(other)}]", "only #{names.map { |name| "page[#{name}]" }.join(" and ")} are known")
      end

      # A range may have as many records as the largest page.
      def cursor_size(page, paging)
        return page.key?("after") && page.key?("before") ? paging.max_size : paging.size unless page.key?("size")

        size = page["size"]
        size = size.is_a?(String) && Parameter.text("page[size]", size).match?(/\A\d+\z/) ? size.to_i : integer("page[size]", size)
        refuse("page[size]", "page[size] must be at least 1, got #{size}") unless size.positive?
        return size if size <= paging.max_size

        most = paging.max_size
        raise BadRequest.new("page[size] must be from 1 to #{most}, got #{size}",
                             parameter: "page[size]", title: "Page size requested is too large", meta: { "page" => { "maxSize" => most } },
                             links: { "type" => "#{Cursor::PROFILE}/max-size-exceeded" })
      end

      def place(page)
        order = [@definition.name, @definition.type, *sort.map { |column, direction| "#{Array(column).join(".")} #{direction}" }].join(" ")
        after, before = %w[after before].map do |name|
          given = page && (page[name] || page[name.to_sym]) or next
          text = Parameter.text("page[#{name}]", given)
          Cursor.parse(order, text) || refuse("page[#{name}]", "page[#{name}] is no cursor of this list")
        end
        Place.new(after, before, @page.last, order).freeze
      end

      def checked_page(page, paging)
        size = within("page[size]", page.fetch("size", paging.size), paging.max_size)
        [within("page[number]", page.fetch("number", 1), MAX_OFFSET / size), size]
      end

      def within(parameter, value, highest)
        number = integer(parameter, value)
        return number if number.between?(1, highest)

        refuse(parameter, "#{parameter} must be from 1 to #{highest}, got #{Parameter.shown(number.to_s)}")
      end

      def integer(parameter, value)
        return value if value.is_a?(Integer)

        refuse(parameter, "#{parameter} must be a whole number") unless value.is_a?(String)
        text = Parameter.text(parameter, value)
        refuse(parameter, "#{parameter} must be a whole number, got #{Parameter.shown(text).inspect}") unless text.match?(/\A\d+\z/)

        Integer(text, 10)
      end

      # Caches the signature of the plain shape: all members, nothing included.
      def sign
        return @definition.derive([:signature, format]) { signed } if include.empty? && !@sent && !fields.sparse?

        signed
      end

      def signed = "#{format}#{"+" if includes_nothing?}|#{shape_of(@definition, include)}".freeze

      # Returns for example "UserResource:users(email,roles{RoleResource:roles(title)},groups)". Contains only
      # declared names, so that clients cannot create new signatures.
      def shape_of(definition, tree)
        return "#{definition.name}<#{definition.types.map { |type| shape_of(type, tree) }.join("|")}>" if definition.several_types?

        parts = fields.of(definition).map { |name| name.name + shape_below(definition, name, tree) }
        unwritten = (tree.keys & definition.relationships.keys) - fields.of(definition)
        unwritten = unwritten.select { |name| included?(definition, name) }.map { |name| "!#{name}#{shape_below(definition, name, tree)}" }
        "#{definition.name}:#{definition.type}(#{(parts + unwritten).join(",")})"
      end

      def shape_below(definition, name, tree)
        relationship = definition.relationships[name] if tree.key?(name)
        return "" unless relationship # an attribute may have the name of another type's relationship

        "{#{relationship.definitions.map { |related| shape_of(related, tree[name]) }.join("|")}}"
      end

      def quoted(name) = Parameter.shown(name).inspect
      def hint(name, names) = Nearest.hint(Parameter.shown(name), names)
      def refuse(parameter, detail) = Parameter.refuse(parameter, detail)
    end
  end
end
