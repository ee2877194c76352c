# frozen_string_literal: true

module Castellan
  module Compat
    # Defines a reader of the related id for each `has_one`, like jsonapi-serializer.
    #
    #   class User < ActiveRecord::Base
    #     has_one :employee
    #   end
    #
    #   user.employee_id   # => 7, the id of the employee
    #
    # Models that were defined before this file was loaded have none. A
    # column of the same name takes precedence.
    module HasOneIds
      # (see ActiveRecord::Associations::ClassMethods#has_one)
      def has_one(name, *arguments, **options, &block) = super.tap { include HasOneIds.reader(name) }

      # @return [Module]
      def self.reader(name)
        column = "#{name}_id"
        Module.new do
          define_method(column) do
            next read_attribute(column) if has_attribute?(column)

            related = association(name).reader
            related.id if related.respond_to?(:id)
          end
        end
      end
    end
  end
end

if defined?(ActiveSupport) && ActiveSupport.respond_to?(:on_load)
  ActiveSupport.on_load(:active_record) { extend Castellan::Compat::HasOneIds }
end
