# frozen_string_literal: true

require_relative "resource"
require_relative "rows"

module Castellan
  # Creates, updates and deletes records through the models, from JSON:API documents.
  #
  #   writer = Write::Writer.new(PostResource, viewer: current_user)
  #   writer.create({ "type" => "posts", "attributes" => { "title" => "Hello" } }) { |record| … }
  #
  # Writes all of a request in one transaction ({Write::Transaction}). Collects the mistakes of the client and
  # raises them together ({InvalidDocument}).
  module Write
    # Checks at boot that the model has a writer for each attribute and relationship that a resource declares
    # writable.
    # @param definition [Resource::Definition]
    # @raise [DeclarationError]
    # @raise [ConfigurationError] if the model cannot be written
    def self.check!(definition)
      writing = definition.writing
      return unless %i[create update delete].any? { |action| writing.any?(action) }

      models = Models.for(definition.model)
      check_key!(definition, models)
      wrong = (writing.all_names - [:id]).find { |name| !writer?(definition, models, name) } or return
      known = definition.members.select { |name| writer?(definition, models, name) }
      raise DeclarationError.new("#{definition.name} writable #{wrong.inspect}: #{definition.model} has no writer #{wrong}=" \
                                 "#{Nearest.hint(wrong, known)}", location: definition.writing_location)
    end

    # A statement that changes or deletes a record names it by the primary key of its model.
    def self.check_key!(definition, models)
      problem = if definition.writing.changes? && models.model.primary_key.nil?
                  "#{definition.model} has no primary key (a view has none), so its records cannot be changed or deleted"
                elsif definition.writing.all_names.include?(:id) && definition.id_column.is_a?(Array)
                  "writable :id: the id has several columns, so #{several_columns(definition.id_column)}"
                end
      raise DeclarationError.new("#{definition.name} #{problem}", location: definition.writing_location) if problem
    end

    def self.several_columns(columns)
      return "clients cannot choose it: the database or your create must" if columns.include?(:id)

      "name them: #{columns.map(&:inspect).join(", ")}"
    end

    def self.writer?(definition, models, name)
      relationship = definition.relationships[name]
      return models.writer?(relationship.association_name) && relationship.block.nil? if relationship

      attribute = definition.attributes[name]
      column = attribute&.own_column
      (column || attribute&.source != :path) && models.writer?(column || name)
    end
    private_class_method :check_key!, :several_columns, :writer?
  end
end

require_relative "write/body"
require_relative "write/attribute_type"
require_relative "write/linked_records"
require_relative "write/resource_object"
require_relative "write/database_error"
require_relative "write/not_saved"
require_relative "write/models"
require_relative "write/transaction"
require_relative "write/writer"
require_relative "write/methods"

module Castellan
  module Write
    # Autoloaded, because each needs its own gem.
    autoload :ActionPolicyAuthorizer, "castellan/write/action_policy_authorizer"
    autoload :PunditAuthorizer, "castellan/write/pundit_authorizer"
  end
end

Castellan::Resource.include(Castellan::Write::Methods)
