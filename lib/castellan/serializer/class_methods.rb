# frozen_string_literal: true

module Castellan
  module Serializer
    # Defines the class methods of jsonapi-serializer 2.2, with its defaults.
    #
    #   class MovieSerializer
    #     include Castellan::Serializer
    #     set_type :film                   # default: from the class's name, :movie
    #     set_key_transform :dash          # applies to the declarations after it
    #     attributes :name, :year
    #     belongs_to :studio, serializer: :movie_studio
    #   end
    #
    # A subclass inherits its superclass's declarations.
    module ClassMethods
      # Class methods of jsonapi-serializer that Castellan never calls; serializers that override one raise.
      UNUSED = %i[record_hash attributes_hash relationships_hash links_hash meta_hash id_hash get_included_records].freeze
      INHERITED = %i[attributes_to_serialize relationships_to_serialize data_links transform_method record_id meta_to_serialize
                     cache_store_instance cache_store_options loads_together].freeze
      private_constant :INHERITED, :UNUSED

      # @return [Hash{Symbol => Member}, nil] by key
      # @return [Hash{Symbol => DeclaredRelationship}, nil] by name
      # @return [Symbol, Proc, nil] the method or block that returns the id
      # @return [Boolean, nil] see {#together}
      attr_accessor :record_type, *INHERITED

      def inherited(subclass)
        super
        INHERITED.each do |name|
          value = public_send(name)
          subclass.public_send(:"#{name}=", value.is_a?(Hash) ? value.dup : value)
        end
        type = subclass.reflected_record_type
        type ? subclass.set_type(type) : subclass.record_type = record_type
      end

      # @return [Symbol, nil] :movie for MovieSerializer
      def reflected_record_type
        Inflector.underscore(name.split("::").last.delete_suffix("Serializer")).to_sym if name&.end_with?("Serializer")
      end

      # @return [Symbol]
      # @raise [ConfigurationError] without a type, and for a method that only jsonapi-serializer calls
      def record_type!
        unused = UNUSED.find { |method| respond_to?(method, true) }
        unused ||= :process_options if method_defined?(:process_options) || private_method_defined?(:process_options)
        if unused
          raise ConfigurationError, "#{name || "a serializer"} defines #{unused}, which jsonapi-serializer calls and Castellan does " \
                                    "not: declare what it adds with attribute, link or meta"
        end
        record_type or raise ConfigurationError, "#{name || "a serializer without a name"} has no type: write `set_type :user`"
      end

      # @param name [Symbol, String]
      def set_type(name) # rubocop:disable Naming/AccessorMethodName
        castellan_changed
        self.record_type = run_key_transform(name)
      end

      # @param name [Symbol, nil] a method of the record
      # @yield [record, params] returns the id, instead of a method
      def set_id(name = nil, &block)
        castellan_changed
        self.record_id = block || name
      end

      # @param name [Symbol] :camel, :camel_lower, :dash, :underscore; anything else leaves names unchanged
      def set_key_transform(name) # rubocop:disable Naming/AccessorMethodName
        self.transform_method = name.to_sym
        type = record_type || reflected_record_type
        set_type(type) if type
      end

      # The name of `set_key_transform :dash` in early versions of fast_jsonapi.
      def use_hyphen
        set_key_transform :dash
      end

      # @param names [Array<Symbol>] methods of the record; optionally, a last Hash with options (if, from,
      #   preloads, as_stored), and a lambda instead of a block
      # @yield [record, params] returns the value
      def attributes(*names, &block)
        names = names.first.dup if names.first.is_a?(Array)
        options = names.last.is_a?(Hash) ? names.pop : {}
        block = names.pop if names.last.is_a?(Proc)
        self.attributes_to_serialize ||= {}
        names.each { |name| castellan_member(attributes_to_serialize, name, block || name, options) }
      end
      alias attribute attributes

      # @!macro [attach] relationship @param name [Symbol] also its method on the record, without
      #   `object_method_name:` and a block @param options [Hash] key, id_method_name, object_method_name,
      #   serializer, record_type, polymorphic, if, links, meta, lazy_load_data @yield [record, params] or
      #   what returns the related records
      def has_many(name, options = {}, &block) = castellan_relationship(name, :has_many, options, block)
      def has_one(name, options = {}, &block) = castellan_relationship(name, :has_one, options, block)
      def belongs_to(name, options = {}, &block) = castellan_relationship(name, :belongs_to, options, block)

      # @param name [Symbol] the link's name
      # @param method [Symbol] a method of the record; default: the name
      # @yield [record, params] returns the link
      def link(name, method = name, options = {}, &block)
        options, method = method, name if method.is_a?(Hash)
        self.data_links ||= {}
        castellan_member(data_links, name, block || method, options)
      end

      # @param value [Hash, Symbol, nil] the meta object of each record, or
      #   the record's method that returns it
      # @yield [record, params] returns the meta object
      def meta(value = nil, &block)
        castellan_changed
        self.meta_to_serialize = block || value
      end

      # Sets whether blocks of this serializer's documents load associations for all records at once: the
      # first block that calls `product.variants` then loads the variants of all products of the document.
      #
      #   together false    # each record loads its own
      # @param value [Boolean] default: {Castellan.together}, which is true
      # @raise [ConfigurationError] for anything else
      def together(value)
        raise ConfigurationError, "together must be true or false, got nil" if value.nil?

        self.loads_together = Rows::Together.checked(value, "together")
      end

      # Caches the object of each record, per class, set of fields and `params`; see {RecordCache}.
      # @param options [Hash] store (any object with `fetch(record, **options) { }`) and the store's own
      #   options; or fast_jsonapi's enabled, cache_length and race_condition_ttl, which use Rails.cache
      # @raise [ConfigurationError]
      def cache_options(options)
        self.cache_store_instance = options.fetch(:store) { castellan_rails_cache if options[:enabled] }
        self.cache_store_options = options.except(:store)
        return if options.key?(:store)

        self.cache_store_options = { expires_in: options[:cache_length] || 300, race_condition_ttl: options[:race_condition_ttl] || 5 }
      end

      # Returns the store's options for a record. Override it and call `super` to add options.
      # @return [Hash]
      def record_cache_options(options, fieldset, includes_list, params)
        RecordCache.options(self, options || {}, fieldset, includes_list, params)
      end

      # Override it, with or without `super`, to allow fewer or more includes.
      # @param includes [Array<Symbol>, nil] paths
      # @raise [UnsupportedIncludeError] for a path that does not begin with a relationship
      def validate_includes!(includes)
        [*includes].map { |path| path.to_s.partition(".").first.to_sym }.uniq.each do |name|
          relationship = relationships_to_serialize&.[](name)
          raise UnsupportedIncludeError.new(name, self.name) unless relationship

          relationship.static_serializer # raises without a serializer
        end
      end

      # @return [Boolean] `force` unless it is nil, otherwise whether the resource is a collection
      def is_collection?(resource, force = nil)
        return force unless force.nil?

        resource.is_a?(Enumerable) && !resource.respond_to?(:each_pair)
      end

      # @return [Object] the record's id, not converted
      # @raise [MandatoryField]
      def id_from_record(record, params = {})
        return Serializer.call_proc(record_id, record, params) if record_id.is_a?(Proc)
        return record.send(record_id) if record_id
        raise MandatoryField, "id is a mandatory field in the jsonapi spec" unless Serializer.answers?(record, :id)

        record.id
      end

      # @return [Class] the serializer of that name, in the namespace of this one
      # @raise [NameError]
      def serializer_for(name)
        last = Inflector.singularize(name.to_s.split("::").last.sub(/.*\./, ""))
        found = "#{self.name.gsub(/\w+Serializer$/, "")}#{Inflector.camelize(last)}Serializer"
        Object.const_get(found)
      rescue NameError
        raise NameError, "#{self.name} cannot resolve a serializer class for '#{name}'.  Attempted to find '#{found}'. " \
                         "Consider specifying the serializer directly through options[:serializer]."
      end

      def run_key_transform(name) = Serializer.transform(name, transform_method)

      private

      # Private methods have the prefix castellan_, because applications also define class methods.

      # Discards the result of {Translation} for the earlier declarations.
      def castellan_changed
        @castellan_translations = nil
      end

      def castellan_member(members, name, method, options)
        castellan_changed
        key = run_key_transform(name)
        members[key] = Member.new(key: key, method: method, options: options)
      end

      def castellan_relationship(name, type, options, block)
        castellan_changed
        self.relationships_to_serialize ||= {}
        relationships_to_serialize[name.to_sym] =
          DeclaredRelationship.new(owner: self, name: name.to_sym, key: options[:key] || run_key_transform(name), relationship_type: type,
                                   transform_method: transform_method, object_block: block, options: options)
      end

      def castellan_rails_cache
        return ::Rails.cache if defined?(::Rails) && ::Rails.respond_to?(:cache) && ::Rails.cache

        raise ConfigurationError, "cache_options enabled: true means Rails.cache, which is not there; write cache_options store: …"
      end
    end
  end
end
