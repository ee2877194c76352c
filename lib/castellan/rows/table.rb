# frozen_string_literal: true

module Castellan
  module Rows
    # Builds a model or dataset for a table or view without a class, in Sequel's or ActiveRecord's DB.
    #
    #   Table.named(:company_statistics)   # => DB[:company_statistics], or an anonymous ActiveRecord class
    module Table
      MODELS = {} # rubocop:disable Style/MutableConstant
      LOCK = Mutex.new
      private_constant :MODELS, :LOCK

      module_function

      # @param object [Symbol, String, Object] a table's name, or any other object
      # @return [Object] the model or dataset; any object that is not a name is returned unchanged
      # @raise [DeclarationError] if it is not certain which database has the table
      def named(object)
        return object unless object.is_a?(Symbol) || object.is_a?(String)

        case [sequel.size, active_record?]
        when [1, false] then sequel.first[object.to_sym]
        when [0, true] then LOCK.synchronize { MODELS[object.to_sym] ||= model(object.to_s) }
        else refuse(object)
        end
      end

      def sequel
        defined?(::Sequel::DATABASES) ? ::Sequel::DATABASES : []
      end

      def active_record?
        defined?(::ActiveRecord::Base) && ::ActiveRecord::Base.connected? || false
      end

      def model(name)
        Class.new(::ActiveRecord::Base) do
          self.table_name = name
          self.inheritance_column = nil
        end
      end

      def refuse(name)
        connected = "ActiveRecord is #{"not " unless active_record?}connected, Sequel has #{sequel.size} databases"
        raise DeclarationError, "it cannot be told which database has the table #{name.inspect} (#{connected}): give an ActiveRecord " \
                                "model, or a Sequel model or dataset such as DB[:#{name}]"
      end
      private_class_method :sequel, :active_record?, :model, :refuse
    end
  end
end
