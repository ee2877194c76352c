# frozen_string_literal: true

module Castellan
  module Compat
    # Gives each `has_one` of ActiveRecord a reader of the related id, as jsonapi-serializer does to every model. Extends
    # ActiveRecord::Base, by the macro that is public.
    #
    #   class User < ActiveRecord::Base
    #     has_one :employee
    #   end
    #
    #   user.employee_id   # => 7, the id of the employee
    #
    # Only models that are defined after this was loaded have it. A column of the name goes before.
    module HasOneIds
      # (see ActiveRecord::Associations::ClassMethods#has_one)
      def has_one(name, *arguments, **options, &block)
        super.tap { include HasOneIds.reader(name) }
      end

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
