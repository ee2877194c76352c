# frozen_string_literal: true

require_relative "version"
require_relative "errors"
require_relative "document" unless Castellan.autoload?(:Document) # else it would be required while it is loaded for its Resource
require_relative "serializer/error"
require_relative "serializer/unsupported_include_error"
require_relative "serializer/mandatory_field"
require_relative "serializer/names"
require_relative "serializer/blank"
require_relative "serializer/member"
require_relative "serializer/relationship"
require_relative "serializer/hash_methods"
require_relative "serializer/class_methods"
require_relative "serializer/options"
require_relative "serializer/resource_object"
require_relative "serializer/included"
require_relative "serializer/record_cache"
require_relative "serializer/json_text"

module Castellan
  # Takes the place of `include JSONAPI::Serializer` (jsonapi-serializer 2.2): the same class methods, the same document for the
  # same input. Given an ActiveRecord relation or a Sequel dataset that is not loaded, it is written from rows.
  #
  #   class UserSerializer
  #     include Castellan::Serializer
  #     attributes :email, :last_name
  #     attribute(:greeting) { |user, params| "#{params[:word]}, #{user.first_name}" }
  #     has_many :roles
  #   end
  #
  #   UserSerializer.new(user, params: { word: "Hello" }).serializable_hash   # of a record: a Hash
  #   UserSerializer.new(User.active, include: [:roles]).to_json              # of a relation: rows, and models where a block needs them
  #   puts UserSerializer.new(User.active).explain                            # which types need models, and why
  #
  # What jsonapi-serializer gets wrong is right here: a cache knows the class and the `params`, two sets of fields have two keys,
  # a relationship with `lazy_load_data` that is included has its linkage at every depth, a record that many lead to is walked
  # once, and a serializer that is asked twice answers twice.
  #
  # Further than jsonapi-serializer: `attribute :employee_id, from: "employee.id"` (a column through to-one associations) and
  # `preloads:` of an attribute or relationship (what its block walks).
  module Serializer
    autoload :Explanation, "castellan/serializer/explanation"
    autoload :Instrumentation, "castellan/serializer/instrumentation"
    autoload :RelationDocument, "castellan/serializer/relation_document"
    autoload :Source, "castellan/serializer/source"
    autoload :Translation, "castellan/serializer/translation"

    # Of a module that includes this one: a class that includes that module is a serializer, before anything else of it is seen.
    module Passed
      def append_features(base)
        Serializer.included(base)
        super
      end
    end
    private_constant :Passed

    # @api private
    def self.included(base)
      super
      return base.singleton_class.prepend(Passed) unless base.is_a?(Class)
      return if base.singleton_class.include?(ClassMethods)

      base.extend(ClassMethods)
      base.set_type(base.reflected_record_type) if base.reflected_record_type
    end

    # Calls a block with as many of the arguments as it takes; one made of a symbol (`&:name`) with the record alone.
    # @return what it returns
    def self.call_proc(block, *arguments)
      return block.call(arguments.first) if block.arity.negative?

      block.call(*arguments.take(block.parameters.length))
    end

    # As `respond_to?`, without the attributes of a model being looked through where its class has the method.
    # @return [Boolean]
    def self.answers?(record, name)
      record.class.public_method_defined?(name) || record.respond_to?(name)
    end

    # @param resource [Object] a record, a collection of them, a relation or a dataset, or nil
    # @param options [Hash] include, fields, params, meta, links, is_collection
    # @raise [UnsupportedIncludeError]
    # @raise [ArgumentError] when params is no Hash
    # @raise [ConfigurationError] when the serializer has no type
    def initialize(resource, options = {})
      self.class.record_type!
      @resource = resource
      @options = Options.of(self.class, options)
    end

    # @return [Hash] with symbols as keys and Ruby's own values
    def serializable_hash
      self.class.is_collection?(@resource, @options.is_collection) ? hash_for_collection : hash_for_one_record
    end

    alias to_hash serializable_hash # of this very method, as there: what a class writes over it is asked by its own name

    # @return [Hash]
    def hash_for_one_record
      document = { data: nil, **around }
      return document unless @resource

      document[:data] = primary.call(@resource)
      document[:included] = included([@resource]) if @options.tree.any?
      document
    end

    # @return [Hash]
    def hash_for_collection
      records = self.records
      document = { data: records.map { |record| primary.call(record) } }
      document[:included] = included(records) if @options.tree.any?
      document.merge!(around)
    end

    # @return [String] the document's bytes, UTF-8; takes and ignores what `render json:` gives
    def to_json(*)
      document = self.document or return JsonText.of(hash_for_json)
      verification = Document.verification or return written(document)
      verification.check_serialized(self.class.record_type.to_s, -> { written(self.document) }, -> { JsonText.of(to_hash) })
    end

    # @return [String] in words: what is read of a relation, which types need models, and why
    def explain
      Explanation.new(self.class, source, @options).to_s
    end

    private

    # @return [Source, nil]
    def source
      Source.of(@resource) unless @options.is_collection == false
    end

    # What a class writes over them is what is written.
    def generic?
      %i[hash_for_collection to_hash].all? { |name| method(name).owner.equal?(Serializer) } && !json_of_its_own?
    end

    def json_of_its_own?
      respond_to?(:as_json) && !method(:as_json).owner.equal?(Object)
    end

    # As ActiveSupport asks what is to be JSON.
    def hash_for_json
      json_of_its_own? ? as_json : to_hash
    end

    # @return [RelationDocument, nil] nil where the include leads through what only records know
    def document
      return unless (given = source) && generic?

      document = RelationDocument.new(self.class, given, @options)
      document if document.rows?
    end

    # What rows have no word for (an id that is nil, a number that is none), and what they turn out not to know, is written of records.
    def written(document)
      document.to_json
    rescue EncodingError, DeclarationError
      JsonText.of(hash_for_json)
    end

    def records
      given = source unless @resource.is_a?(Array)
      given.nil? || given.records? ? @resource.to_enum(:each).to_a : RelationDocument.records(self.class, given, @options)
    end

    # What stands beside the data.
    def around
      around = {}
      around[:meta] = @options.meta unless Blank.blank?(@options.meta)
      around[:links] = @options.links unless Blank.blank?(@options.links)
      around
    end

    def primary
      @primary ||= ResourceObject.new(self.class, @options.fieldset(self.class.record_type), @options.params, @options.tree.keys)
    end

    def included(records)
      Included.new(@options).of(self.class, records)
    end
  end
end
