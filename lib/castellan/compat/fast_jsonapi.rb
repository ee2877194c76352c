# frozen_string_literal: true

require_relative "../compat"
require_relative "../serializer"
require_relative "has_one_ids"

Castellan::Compat.claim("FastJsonapi::ObjectSerializer", "fast_jsonapi", nil) unless defined?(Castellan::Compat::FastJsonapi)

# Defines the constants of fast_jsonapi, the predecessor of jsonapi-serializer.
#
#   require "castellan/compat/fast_jsonapi"
#
#   class UserSerializer
#     include FastJsonapi::ObjectSerializer
#     cache_options enabled: true, cache_length: 12 * 3600   # in Rails.cache
#     attributes :email
#     has_many :roles, through: :assignments                 # ignores `through:`, because the model has it
#   end
#
#   UserSerializer.new(user).serialized_json
module FastJsonapi
  MandatoryField = Castellan::Serializer::MandatoryField
  # Classes of the values in `relationships_to_serialize`, `attributes_to_serialize` and `data_links`.
  Relationship = Castellan::Serializer::DeclaredRelationship
  Scalar = Attribute = Link = Castellan::Serializer::Member

  # Adds `serialized_json` to {Castellan::Serializer}.
  module ObjectSerializer
    # @api private
    def self.included(base)
      super
      base.include(Castellan::Serializer)
    end

    # @return [String]
    def serialized_json = to_json
  end

  # Calls a block with as many of the arguments as it takes.
  def self.call_proc(block, *arguments) = Castellan::Serializer.call_proc(block, *arguments)
end

module Castellan
  module Compat
    # @return [Module]
    FastJsonapi = ::FastJsonapi
  end
end
