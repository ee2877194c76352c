# frozen_string_literal: true

require "active_support/parameter_filter"

module Castellan
  module Generators
    # What of a model belongs into its resource: columns and associations that clients may see, and the others with the reason.
    #
    #   members = ModelMembers.new(User)
    #   members.attributes      # => ["email", "last_name"]
    #   members.secrets         # => ["password_digest"]
    #   members.relationships   # => ["has_many :roles", "belongs_to :boss, resource: \"UserResource\""]
    #   members.absent          # => [["has_many :groups", "needs GroupResource: bin/rails generate castellan:resource Group"]]
    class ModelMembers
      SECRET = /passw|passphrase|passkey|secret|token|digest|salt|crypt|credential|private|api_?key|access_?key|otp|ssn|iban|cvv|
                card_?number|\Apin\z|_pin\z|session|signature|fingerprint|recovery|backup_code/x
      # What is Rails' own machinery and no part of an API.
      MACHINERY = /\A(?:ActiveStorage|ActionText|ActionMailbox|SolidQueue|PaperTrail)::|(?:\A|::)HABTM_/
      private_constant :SECRET, :MACHINERY

      # @param namespace [Array<String>] of the resource, underscored
      def initialize(model, namespace: [])
        @model = model
        @namespace = namespace.map(&:camelize)
      end

      # @return [Array<String>]
      def attributes
        @attributes ||= columns - secrets - reserved
      end

      # @return [Array<String>] columns that nobody should see by accident
      def secrets
        @secrets ||= columns.select { |name| secret?(name) }
      end

      # @return [Array<String>] columns whose name JSON:API keeps for itself
      def reserved
        columns & %w[id type]
      end

      # @return [Array<String>] their declarations
      def relationships
        sorted.first.map(&:first)
      end

      # @return [Array<(String, String)>] the declaration, and why it is not one yet
      def absent
        sorted.last
      end

      # @return [Boolean] whether a row can be identified by one column
      def key?
        @model.primary_key.is_a?(String)
      end

      private

      # Keys are told as linkage; the primary key is the id.
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

      # What Rails keeps out of the log is not for clients either, except that it filters e-mail addresses.
      def filtered?(name)
        !name.include?("mail") && ActiveSupport::ParameterFilter.new(@model.filter_attributes).filter(name => "x")[name] != "x"
      end

      def associations
        @associations ||= @model.reflect_on_all_associations.reject { |one| machinery?(one) }
      end

      def machinery?(reflection)
        MACHINERY.match?(reflection.options[:class_name].to_s) || (!reflection.polymorphic? && MACHINERY.match?(reflection.klass.name.to_s))
      rescue NameError
        false # an association to a class that is not there is the reason in `absent`
      end

      def sorted
        @sorted ||= associations.map { |one| ["#{macro(one)} :#{one.name}#{option(one)}", reason(one)] }.partition { |_, why| why.nil? }
      end

      def macro(reflection)
        reflection.macro == :has_and_belongs_to_many ? :has_many : reflection.macro
      end

      # The default is named after the association, not after its class.
      def option(reflection)
        own = resource_name(reflection)
        ", resource: #{own.inspect}" unless own.nil? || own == default_name(reflection) || resource?(default_name(reflection))
      end

      def reason(reflection)
        return "is polymorphic: name its resources, resource: [PostResource, UserResource]" if reflection.polymorphic?

        own = resource_name(reflection) or return "leads to a class that is not there (#{reflection.class_name})"
        return if resource?(default_name(reflection)) || resource?(own)

        "needs #{own}: bin/rails generate castellan:resource #{reflection.klass.name}"
      end

      def default_name(reflection)
        "#{Resource::ResourceName.classify(reflection.name)}Resource"
      end

      # Of the class that it leads to; nil where that is not known.
      def resource_name(reflection)
        "#{reflection.klass.name}Resource" unless reflection.polymorphic?
      rescue NameError
        nil
      end

      # As {Resource::ResourceName} will look it up.
      def resource?(name)
        own = [*@namespace, name].join("::")
        return true if own == "#{@model.name}Resource"

        around = @namespace.size.downto(0).map { |size| [*@namespace.first(size), name].join("::") }
        around.any? { |constant| constant.safe_constantize.then { |found| found.is_a?(Class) && found <= Resource } }
      end
    end
  end
end
