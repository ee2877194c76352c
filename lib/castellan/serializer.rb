# frozen_string_literal: true

require_relative "version"
require_relative "errors"
require_relative "document"
require_relative "serializer/errors"
require_relative "serializer/member"
require_relative "serializer/declared_relationship"
require_relative "serializer/class_methods"
require_relative "serializer/document_options"
require_relative "serializer/record_objects"
require_relative "serializer/record_cache"
require_relative "serializer/json_text"
require_relative "serializer/translation"
require_relative "serializer/layout"
require_relative "serializer/relation_document"
require_relative "serializer/record_document"

module Castellan
  # Replaces `include JSONAPI::Serializer` (jsonapi-serializer 2.2): same class methods, same documents.
  #
  #   class UserSerializer
  #     include Castellan::Serializer
  #     attributes :email, :last_name
  #     attribute(:greeting) { |user, params| "#{params[:word]}, #{user.first_name}" }
  #     has_many :roles
  #   end
  #
  #   UserSerializer.new(user, params: { word: "Hello" }).serializable_hash   # a record: a Hash
  #   UserSerializer.new(User.active, include: [:roles]).to_json              # a relation: read as rows
  #   puts UserSerializer.new(User.active).explain                            # types that need models
  #
  # Renders an unloaded ActiveRecord relation or Sequel dataset from rows, with models only if a block needs
  # them. Fixes bugs of jsonapi-serializer: cache keys contain the class, the fields and the `params`;
  # included relationships with `lazy_load_data` have linkage at every depth; a record that is included twice
  # is visited once; `serializable_hash` can be called twice.
  #
  # Additional options: `from: "employee.id"` (a column at the end of to-one associations), `as_stored: true`
  # (the column as stored) and `preloads:` (the associations that a block reads).
  module Serializer
    autoload :Instrumentation, "castellan/serializer/instrumentation"

    # Extends modules that include {Serializer}, so that classes that include them become serializers.
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

    # Calls a block with as many arguments as it takes; a block from a
    # symbol (`&:name`) receives only the record.
    # @return [Object] the block's result
    def self.call_proc(block, *arguments)
      return block.call(arguments.first) if block.arity.negative?

      block.call(*arguments.take(block.parameters.length))
    end

    # @return [Boolean] whether the block takes `params`
    def self.takes_params?(block) = block.is_a?(Proc) && block.arity >= 0 && block.parameters.size > 1

    # @param way [Symbol, nil] see {ClassMethods#set_key_transform}
    # @return [Symbol] the name, transformed as by jsonapi-serializer
    def self.transform(name, way)
      case way
      when :camel then Inflector.camelize(name.to_s)
      when :camel_lower then Inflector.camelize(name.to_s, lower: true)
      when :dash then name.to_s.tr("_", "-")
      when :underscore then Inflector.underscore(name.to_s)
      else name
      end.to_sym
    end

    # Replaces ActiveSupport's `blank?`: true for nil, false, empty objects and strings of whitespace.
    def self.blank?(value)
      case value
      when Integer then false
      when String then value.empty? || (value.valid_encoding? && /\A[[:space:]]*\z/.match?(value))
      when nil, false then true
      else value.respond_to?(:empty?) ? value.empty? : false
      end
    end

    # Skips `respond_to?`, which searches a model's attributes, if the class defines the method.
    def self.answers?(record, name) = record.class.public_method_defined?(name) || record.respond_to?(name)

    # @param resource [Object, nil] a record, a collection of records, a relation or a dataset
    # @param options [Hash] include, fields, params, meta, links, is_collection
    # @raise [UnsupportedIncludeError] for an undeclared include
    # @raise [ArgumentError] unless params is a Hash
    # @raise [ConfigurationError] if the serializer has no type
    def initialize(resource, options = {})
      self.class.record_type!
      @resource = resource
      @castellan = RecordDocument.new(self, resource, DocumentOptions.new(self.class, options || {}))
    end

    # @return [Hash] Symbol keys and Ruby values
    def serializable_hash = @castellan.collection? ? hash_for_collection : hash_for_one_record

    alias to_hash serializable_hash # a class may override only one of them

    # @return [Hash]
    def hash_for_one_record = @castellan.one_record

    # @return [Hash]
    def hash_for_collection = @castellan.collection

    # @return [String] the bytes of the document, UTF-8; ignores the arguments that `render json:` passes
    def to_json(*) = @castellan.json

    # @return [String] the queries, the types that need models, and why
    def explain = @castellan.explain
  end
end
