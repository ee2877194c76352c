# frozen_string_literal: true

require_relative "version"
require_relative "errors"
require_relative "document" unless Castellan.autoload?(:Document) # else it would be required while it is loaded for its Resource
require_relative "serializer/error"
require_relative "serializer/unsupported_include_error"
require_relative "serializer/mandatory_field"
require_relative "serializer/names"
require_relative "serializer/blank"
require_relative "serializer/preloading"
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
  # Bugs of jsonapi-serializer are fixed: cache keys contain the class, the fields and the `params`; an included relationship with
  # `lazy_load_data` has its linkage at every depth; a record that is reached twice is walked once; `serializable_hash` can be called twice.
  #
  # Additional options: `from: "employee.id"` (a column through to-one associations), `as_stored: true` (the column as it is in the table)
  # and `preloads:` (the associations that a block reads).
  module Serializer
    autoload :AssociationTree, "castellan/serializer/association_tree"
    autoload :Explanation, "castellan/serializer/explanation"
    autoload :Instrumentation, "castellan/serializer/instrumentation"
    autoload :RelationDocument, "castellan/serializer/relation_document"
    autoload :Source, "castellan/serializer/source"
    autoload :Translation, "castellan/serializer/translation"
    autoload :Writing, "castellan/serializer/writing"

    # Extends a module that includes {Serializer}: a class that includes that module becomes a serializer first of all.
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
      @castellan = Writing.new(self, resource, Options.of(self.class, options))
    end

    # @return [Hash] with symbols as keys and Ruby's own values
    def serializable_hash
      @castellan.collection? ? hash_for_collection : hash_for_one_record
    end

    alias to_hash serializable_hash # of this very method, as there: what a class writes over it is asked by its own name

    # @return [Hash]
    def hash_for_one_record
      @castellan.one_record
    end

    # @return [Hash]
    def hash_for_collection
      @castellan.collection
    end

    # @return [String] the document's bytes, UTF-8; takes and ignores what `render json:` gives
    def to_json(*)
      @castellan.json
    end

    # @return [String] in words: what is read of a relation, which types need models, and why
    def explain
      @castellan.explain
    end
  end
end
