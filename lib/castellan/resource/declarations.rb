# frozen_string_literal: true

module Castellan
  class Resource
    # Collects the declarations in a resource's body, from which {Definition} is built.
    #
    # Raises for mistakes that can be found without the database;
    # {Document::DeclarationCheck} finds the others at boot.
    class Declarations
      # The pagination. `count` is the member's name in `meta`, or nil; `kind` is :number or :cursor;
      # `cursors` is true if each item has its cursor.
      Page = Struct.new(:size, :max_size, :count, :kind, :cursors)
      # How long documents are cached, in seconds or nil (see {Cache::Freshness}); `by` are names of columns.
      Caching = Struct.new(:kind, :expires_in, :stale_while_revalidate, :stale_if_error, :by) do
        # @return [Boolean] whether a document may be served after it expired or changed
        def stale? = !(stale_while_revalidate || stale_if_error).nil?
      end

      # The block that restricts rows to those that a viewer may see, and its "path:line".
      Scope = Struct.new(:block, :location)

      # A column that clients may filter or sort by: `from:` as declared, or nil, and its "path:line".
      OnColumn = Struct.new(:from, :location, :reveals)
      DEPTHS = (1..10)
      private_constant :DEPTHS

      attr_accessor :model, :type, :meta, :pure, :variation, :scope, :writing, :together, :self_links, :types, :cache_control
      attr_reader :id_column, :attributes, :relationships, :representations, :filters, :sorts, :default_sort, :paging, :caching,
                  :document_format, :transform, :locations, :links, :include_depth

      def initialize
        @attributes = {}
        @relationships = {}
        @representations = {}
        @filters = {}
        @sorts = {}
        @locations = {}
        @links = {}
        @inherited = []
        @document_format = :json_api
        @transform = :none
        @include_depth = 3
        @writing = Writing.new
      end

      # @return [Declarations] a copy for a subclass
      def copy
        dup.tap { |copy| copy.send(:unshare) }
      end

      def identify(columns, location:)
        refuse("id: name the column that identifies a row, or several", location) if columns.empty?

        @id_column = columns.size == 1 ? columns.first.to_sym : columns.map(&:to_sym).freeze
        @locations[:id] = location
      end

      def attribute(name, location:, from: nil, columns: nil, viewer: false, block: nil, preloads: nil, condition: nil, pure: nil,
                    as_stored: false, version: nil)
        if from && (columns || block)
          refuse("attribute #{name.inspect}: from: is read as it is; leave out columns: and the block", location)
        end
        refuse("attribute #{name.inspect}: columns: needs a block that reads them", location) if columns && !block
        if columns && preloads
          refuse("attribute #{name.inspect}: preloads: is for a block that takes the record; leave out columns:", location)
        end
        refuse("attribute #{name.inspect}: as_stored: writes a column as it is; leave out the block", location) if as_stored && block

        reserved!(name, location) unless name.to_sym == :type # the format decides, which may be declared later
        replace!(name, @relationships, location)
        preloads = preloads.is_a?(Hash) ? [preloads] : Array(preloads)
        @attributes[name.to_sym] = { from: from, columns: columns, viewer: viewer, block: block, preloads: preloads.freeze,
                                     condition: condition, pure: pure, as_stored: as_stored, version: version, location: location }
      end

      def relationship(name, location:, **options)
        reserved!(name, location)
        replace!(name, @attributes, location)
        @relationships[name.to_sym] = { **options, location: location }
      end

      def representation(name, only, location:)
        @representations[name.to_sym] = Array(only).map(&:to_sym).freeze
        @locations[[:representation, name.to_sym]] = location
      end

      def filter(names, from, block, reveals, location:)
        many = names.map(&:inspect).join(", ")
        refuse("filter: name what clients may filter by", location) if names.empty?
        refuse("filter #{many}: a block or from: is for one name; declare each by itself", location) if (block || from) && names.size > 1
        refuse("filter #{many}: from: names a column; leave out the block", location) if block && from

        names.each { |name| @filters[name.to_s] = block || OnColumn.new(from, location, reveals).freeze }
      end

      def sort(names, from:, default:, reveals:, location:)
        refuse("sort #{names.map(&:inspect).join(", ")}: from: is for one name; declare each by itself", location) if from && !names.one?

        names.each { |name| @sorts[name.to_s] = OnColumn.new(from, location, reveals).freeze }
        return unless default

        @default_sort = default
        @locations[:sort] = location
      end

      def page(kind, size, max_size, count, cursors, location:)
        return @paging = nil if kind == false

        one_of!("page", kind, %i[number cursor], location)
        refuse("page cursors: items of pages by number have none; write page :cursor", location) if cursors && kind == :number
        if kind == :cursor && count.is_a?(String)
          refuse("page count: #{count.inspect}: the total of cursor pages is meta.page.total; write count: true", location)
        end
        unless size.is_a?(Integer) && max_size.is_a?(Integer) && size.between?(1, max_size)
          refuse("page size: #{size.inspect}, max_size: #{max_size.inspect}: write whole numbers with 1 <= size <= max_size", location)
        end

        @paging = Page.new(size, max_size, count == true ? "total" : count || nil, kind, cursors).freeze
        @locations[:page] = location
      end

      def cache(kind, location:, layer: nil, by: nil, **times)
        one_of!("cache", kind, %i[exact notified], location)
        unless layer.nil?
          refuse("cache layer: #{layer.inspect}: Castellan caches whole documents only; leave layer: out", location)
        end

        unless [*by].all? { |column| column.is_a?(Symbol) || column.is_a?(String) }
          refuse("cache by: #{by.inspect}: name columns of the table, such as by: :account_id", location)
        end

        @locations[:cache] = location
        @caching = Caching.new(kind, *times.map { |name, value| seconds(name, value, location) }, [*by].map(&:to_s).freeze).freeze
      end

      def allow_depth(levels, location:)
        possible = levels.is_a?(Integer) && DEPTHS.include?(levels)
        refuse("include_depth #{levels.inspect}: write a whole number from 1 to 10", location) unless possible

        @include_depth = levels
      end

      def format(name, location:)
        one_of!("format", name, %i[json_api nested], location)
        @document_format = name
      end

      def key_transform(name, location:)
        one_of!("key_transform", name, KeyTransform.names, location)
        @transform = name
      end

      private

      def unshare
        %i[@attributes @relationships @representations @filters @sorts @locations @links].each do |name|
          instance_variable_set(name, instance_variable_get(name).dup)
        end
        @inherited = [*@attributes.keys, *@relationships.keys]
        @types = nil # a subclass that `types` lists is written as itself
      end

      def seconds(name, value, location)
        return if value.nil?
        return value.to_f if !value.is_a?(String) && value.respond_to?(:to_f) && value.to_f.positive? && value.to_f.finite?

        refuse("cache #{name}: #{value.inspect}: write seconds above 0, such as #{name}: 60", location)
      end

      # JSON:API 1.1, "Fields": attributes and relationships share one namespace.
      # A subclass may replace an inherited attribute by a relationship, and the other way round.
      def replace!(name, others, location)
        if others.key?(name.to_sym) && !@inherited.include?(name.to_sym)
          refuse("#{name.inspect} cannot be an attribute and a relationship: give one of them another name, with from: or a block",
                 location)
        end
        @inherited.delete(name.to_sym)
        others.delete(name.to_sym)
      end

      # JSON:API 1.1, "Fields": a resource can have no attribute or relationship named `type` or `id`.
      def reserved!(name, location)
        return unless %i[id type].include?(name.to_sym)

        refuse("#{name.inspect} cannot be an attribute or a relationship (JSON:API 1.1, Fields): it is always written; " \
               "declare it with `#{name} …`", location)
      end

      def refuse(text, location)
        raise DeclarationError.new(text, location: location)
      end

      def one_of!(what, given, allowed, location)
        return if allowed.include?(given)

        refuse("#{what} #{given.inspect} is not known#{Nearest.hint(given, allowed)}", location)
      end
    end
  end
end
