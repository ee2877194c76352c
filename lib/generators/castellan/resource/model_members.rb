# frozen_string_literal: true

require "active_support/parameter_filter"

module Castellan
  module Generators
    # Selects columns and associations of a model for its resource, and explains what it leaves out.
    #
    #   members = ModelMembers.new(User)
    #   members.attributes      # => ["email", "last_name"]
    #   members.secrets         # => ["password_digest"]
    #   members.relationships   # => ["has_many :roles", "belongs_to :boss, resource: \"UserResource\""]
    #   members.absent          # => [["has_many :groups", "needs GroupResource: bin/rails generate castellan:resource Group"]]
    class ModelMembers
      SECRET = /passw|passphrase|passkey|secret|token|digest|salt|crypt|cipher|_bidx\z|credential|private|api_?key|access_?key|otp|ssn|
                iban|cvv|card_?number|\Apin\z|_pin\z|session|signature|fingerprint|recovery|backup_code/x
      # Tables of Rails and of gems that do not belong in an API.
      MACHINERY = /\A(?:ActiveStorage|ActionText|ActionMailbox|SolidQueue|PaperTrail)::|(?:\A|::)HABTM_/
      COMPARABLE = %i[string text citext integer bigint decimal float boolean date datetime timestamp timestamptz uuid enum].freeze
      private_constant :SECRET, :MACHINERY, :COMPARABLE

      # @param model [Class] ActiveRecord model
      # @param namespace [Array<String>] the underscored namespace of the resource
      def initialize(model, namespace: [])
        @model = model
        @namespace = namespace.map(&:camelize)
      end

      # @return [Array<String>]
      def attributes
        @attributes ||= columns - secrets - reserved - binaries
      end

      # @return [Array<String>] columns of bytes, which are no text
      def binaries
        @binaries ||= (columns - secrets).select { |name| @model.columns_hash[name].type == :binary }
      end

      # @return [Array<String>] attributes that clients may write; not the class of single table inheritance, and no timestamps
      def writable
        own = attributes - [@model.inheritance_column, *@model.all_timestamp_attributes_in_model]
        own.reject { |name| @model.columns_hash[name].then { |column| column.respond_to?(:virtual?) && column.virtual? } }
      end

      # @return [Array<String>] attributes whose columns can be compared with text of a request
      def comparable
        attributes.select do |name|
          column = @model.columns_hash[name]
          COMPARABLE.include?(column.type) && !(column.respond_to?(:array) && column.array)
        end
      end

      # @return [Array<String>] columns that look secret
      def secrets
        @secrets ||= columns.select { |name| secret?(name) }
      end

      # @return [Array<String>] columns with names that JSON:API reserves
      def reserved
        columns & %w[id type]
      end

      # @return [Array<String>] declarations
      def relationships
        sorted.first.map(&:first)
      end

      # @return [Array<(String, String)>] the declaration, and why it cannot be used yet
      def absent
        sorted.last
      end

      # @return [Boolean] whether there is a primary key, of one column or of several
      def key? = !@model.primary_key.nil?

      private

      # Without foreign keys, which appear as linkage, and without the primary key, which is the id.
      def columns
        @columns ||= @model.column_names - [*@model.primary_key] - associations.flat_map { |one| keys(one) }
      end

      def keys(reflection)
        return [] unless reflection.macro == :belongs_to

        [*reflection.foreign_key, (reflection.foreign_type if reflection.polymorphic?)].compact.map(&:to_s)
      end

      def secret?(name)
        SECRET.match?(name) || filtered?(name) || @model.encrypted_attributes&.include?(name.to_sym) || false
      end

      # Parameters that Rails filters from logs are secrets, except e-mail addresses, which Rails filters,
      # too.
      def filtered?(name)
        !name.include?("mail") && ActiveSupport::ParameterFilter.new(@model.filter_attributes).filter(name => "x")[name] != "x"
      end

      def associations
        @associations ||= @model.reflect_on_all_associations.reject { |one| machinery?(one) }
      end

      def machinery?(reflection)
        MACHINERY.match?(reflection.options[:class_name].to_s) || (!reflection.polymorphic? && MACHINERY.match?(reflection.klass.name.to_s))
      rescue NameError, ArgumentError
        false # {#reason} reports the missing class
      end

      def sorted
        @sorted ||= associations.map { |one| ["#{macro(one)} :#{one.name}#{option(one)}", reason(one)] }.partition { |_, why| why.nil? }
      end

      def macro(reflection)
        reflection.macro == :has_and_belongs_to_many ? :has_many : reflection.macro
      end

      # The default resource comes from the name of the association, not from its class.
      def option(reflection)
        own = resource_name(reflection)
        ", resource: #{own.inspect}" unless own.nil? || own == default_name(reflection) || resource?(default_name(reflection))
      end

      # Deprecated associations (Rails 8.1) warn or raise when they are read.
      def reason(reflection)
        return "is deprecated in the model" if reflection.options[:deprecated]
        return "is polymorphic: name its resources, resource: [PostResource, UserResource]" if reflection.polymorphic?

        own = resource_name(reflection) or return "refers to a class that does not exist (#{reflection.class_name})"
        return "leads to records that are in no table: give it a block" unless reflection.klass <= ::ActiveRecord::Base
        return if resource?(default_name(reflection)) || resource?(own)

        "needs #{own}: bin/rails generate castellan:resource #{reflection.klass.name}"
      end

      def default_name(reflection)
        "#{Inflector.classify(reflection.name, to_many: reflection.collection?)}Resource"
      end

      # @return [String, nil] the resource named after the association's class; nil if the class is unknown
      def resource_name(reflection)
        "#{reflection.klass.name}Resource" unless reflection.polymorphic?
      rescue NameError, ArgumentError # the class is no model
        nil
      end

      # The same lookup as in {Resource::ResourceName}.
      def resource?(name)
        own = [*@namespace, name].join("::")
        return true if own == "#{@model.name}Resource"

        around = @namespace.size.downto(0).map { |size| [*@namespace.first(size), name].join("::") }
        around.any? { |constant| constant.safe_constantize.then { |found| found.is_a?(Class) && found <= Resource } }
      end
    end
  end
end
