# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # Writes the SQL of a model's columns, and chooses the coders that write their values as JSON.
      #
      #   types = ActiveRecordRows.for(User).types
      #   types.qualified(:email)    # => %("users"."email")
      #   types.coder(:email)        # => :text
      #   types.coder(:status)       # => nil, an enum
      #   types.cast(:status, 1)     # => "active"
      #
      # A column has a coder if the driver returns the same value as the model's reader. All others are cast
      # by the attribute's type: `attribute :number, :string` on an integer column, SQLite's decimals (floats
      # to the driver) and JSON (unchecked text), and times in zones other than UTC.
      class ColumnTypes
        IDENTIFYING = %i[integer text date].freeze
        WHOLE = %w[ActiveModel::Type::Value ActiveRecord::Type::DecimalWithoutScale].freeze
        PLAIN = {
          integer: [:integer, %w[ActiveModel::Type::Integer ActiveModel::Type::BigInteger ActiveRecord::Type::UnsignedInteger
                                 ActiveRecord::ConnectionAdapters::SQLite3Adapter::SQLite3Integer]],
          string: [:text, %w[ActiveModel::Type::String ActiveModel::Type::ImmutableString]],
          text: [:text, %w[ActiveModel::Type::String ActiveRecord::Type::Text]],
          citext: [:text, %w[ActiveRecord::ConnectionAdapters::PostgreSQL::OID::SpecializedString]],
          uuid: [:text, %w[ActiveRecord::ConnectionAdapters::PostgreSQL::OID::Uuid]],
          boolean: [:boolean, %w[ActiveModel::Type::Boolean]],
          float: [:float, %w[ActiveModel::Type::Float]],
          decimal: [:decimal, %w[ActiveRecord::ConnectionAdapters::PostgreSQL::OID::Decimal]],
          date: [:date, %w[ActiveRecord::Type::Date ActiveRecord::ConnectionAdapters::PostgreSQL::OID::Date]],
          datetime: [:datetime, %w[ActiveRecord::Type::DateTime ActiveRecord::ConnectionAdapters::PostgreSQL::OID::Timestamp]],
          timestamptz: [:datetime, %w[ActiveRecord::ConnectionAdapters::PostgreSQL::OID::TimestampWithTimeZone]],
          json: [:json, %w[ActiveRecord::Type::Json]],
          jsonb: [:json, %w[ActiveRecord::ConnectionAdapters::PostgreSQL::OID::Jsonb]]
        }.freeze
        DECIMAL = %w[ActiveModel::Type::Decimal ActiveRecord::Type::DecimalWithoutScale].freeze
        UNCHECKED_BY_SQLITE = %i[decimal json].freeze
        UTC_NAMES = %w[UTC Etc/UTC].freeze
        MILLISECONDS = 3
        CLOCK = /\d\d:\d\d:\d\d(\.\d+)?/ # does not match infinity
        NORMALIZED = /\AActive(?:Record|Model)::.*\bNormalizedValueType\z/
        private_constant :NORMALIZED, :CLOCK, :IDENTIFYING, :WHOLE, :PLAIN, :DECIMAL, :UNCHECKED_BY_SQLITE, :UTC_NAMES, :MILLISECONDS

        # @return [String] the quoted table
        attr_reader :table

        def initialize(model, connection, dialect)
          @model = model
          @dialect = dialect
          @table = model.quoted_table_name
          @catalog = BoundedCache.new(limit: 3)
          names = { **model.column_names.to_h { |name| [name, name] }, **model.attribute_aliases }
          @names = names.merge(names.transform_keys(&:to_sym)).freeze
          model.define_attribute_methods unless model.abstract_class?
          @quoted = each_column { |name| connection.quote_column_name(name) }
          @database_types = each_column { |name| Dialect.without_length(model.columns_hash.fetch(name).sql_type) }
          @coders = each_column { |name| plain(name) }
          @zoned = each_column { |name| zone_converter?(unnormalized(model.type_for_attribute(name))) }
          freeze
        end

        # @param name [Symbol, String] a column or an alias
        # @return [String] the column's name
        def name(name) = @names[name] || model.attribute_aliases.fetch(name.to_s, name.to_s)
        def quote(name) = @quoted.fetch(name(name))

        # @return [String] the quoted table and column
        def qualified(name) = "#{table}.#{quote(name)}"

        # @return [String] the SQL expression that the coder reads; times in
        #   UTC whatever the session's time zone
        def sql(name) = with_zone?(name(name)) ? "timezone('UTC', #{qualified(name)})" : qualified(name)

        # @return [String] the database type, without a length
        def database_type(name) = @database_types.fetch(name(name))
        def integer?(name) = coder(name) == :integer

        # @return [String] an SQL literal
        def literal(value) = ActiveRecordRows.lease(@model) { |connection| connection.quote(value) }

        # @return [Symbol, nil] nil if only {#cast} or the model can read the value; depends on Time.zone
        def coder(name)
          name = name(name)
          coder = @coders.fetch(name)
          case coder
          when :date then coder if JSONValue.iso_dates?
          when :datetime then coder if utc?(name)
          else coder
          end
        end

        # Assumes that after_find and after_initialize do not change keys, so that ids can be read as rows.
        # @return [Boolean] whether the driver's value and the reader's value are the same string
        def identifies?(name)
          return false if models.any? { |klass| own_reader(klass, name) || other_type?(klass, name(name)) }

          name = name(name)

          coder = plain(name)
          coder ? IDENTIFYING.include?(coder) : WHOLE.include?(@model.type_for_attribute(name).class.name)
        end

        # @return [Object] the value that the model's reader returns
        def cast(name, value)
          name = name(name)
          value = value.sub(CLOCK, '\\0+00') if value.is_a?(String) && with_zone?(name)
          @model.type_for_attribute(name).deserialize(value)
        end

        # @return [Symbol, nil] how strings are compared with the column: :integer, :decimal, :float,
        #   :boolean, :text, :uuid, :date, :datetime; nil if only the application can compare them
        def kind(name)
          name = name(name)
          column = @model.columns_hash.fetch(name)
          return if column.respond_to?(:array) && column.array

          type = unwrapped(@model.type_for_attribute(name))
          type = type.send(:subtype) if ::ActiveRecord::Enum::EnumType === type # rubocop:disable Style/CaseEquality -- a delegator may be in front
          return :decimal if DECIMAL.include?(type.class.name)
          return :uuid if column.type == :uuid && PLAIN[:uuid].last.include?(type.class.name)

          coder, classes = PLAIN[column.type]
          coder if coder != :json && classes&.include?(type.class.name)
        end

        # @return [Hash{String => Object}, nil] the stored value for each name of an enum
        def enum(name)
          name = name(name)
          mapping = @model.defined_enums[name] if @model.respond_to?(:defined_enums)
          mapping && mapping.to_h { |key, value| [key.to_s, @model.type_for_attribute(name).serialize(key) || value] }
        end

        # @return [Object, nil] the value that `where` compares with the column: `normalizes` of the model is applied; nil if
        #   its block raises for a client's value, such as URI.parse for "a b"
        def compared(name, value)
          type = @model.type_for_attribute(name(name))
          return value unless normalized?(type)

          normal = type.cast(value)
          normal.nil? ? value : normal
        rescue ::ActiveRecord::ActiveRecordError
          raise
        rescue StandardError
          nil
        end

        # @return [Boolean]
        def nullable?(name) = @model.columns_hash.fetch(name(name)).null

        # @param text [String] an id
        # @return [Object, nil] the value that the reader returns for the id; for an enum's number, its name
        def typecast(name, text)
          type = @model.type_for_attribute(name(name))
          value = type.cast(text)
          type.deserialize(type.serialize(value)) if type.serializable?(value)
        end

        # A reader that the application defines, or an after_find or after_initialize callback, may change the
        # value. With STI, the reader may be defined in a subclass.
        # @return [Boolean] whether only an instance can read the column
        def needs_record?(name) = !reading_class(name).nil?

        # Asked in each rendering of loaded records, also because {Verify} compares with what the model does now.
        # @param name [Symbol, String] a column or an alias
        # @return [Boolean] whether instances of the model itself may return another value than the row's
        def read_by_model?(name) = callbacks?(@model) || !own_reader(@model, name).nil?

        # @return [String, nil] the type's class name if the application defines it, such as MoneyType
        def custom_type(name) = custom(@model.type_for_attribute(name(name)))&.name

        # @return [String, nil] the callback or reader that requires an instance, and its location
        def record_reason(name)
          klass = reading_class(name) or return
          event, callback = callbacks(klass).first
          return "the callback #{event} #{written_callback(klass, callback)} of #{klass} may set #{name(name)}" if callback

          reader = own_reader(klass, name) or return "#{klass} has another type for #{name(name)}"
          "#{klass} reads #{reader} by its own method#{ModelReasons.place(klass.instance_method(reader))}"
        end

        # @return [Boolean] whether the column is the primary key or has a unique index
        def unique?(column)
          column.to_s == model.primary_key || whole_indexes.any? { |index| index.unique && index.columns == [column.to_s] }
        end

        # @return [Boolean] whether a B-tree index starts with the column
        def indexed?(column)
          column.to_s == model.primary_key ||
            whole_indexes.any? { |index| Array(index.columns).first == column.to_s && index.using == :btree }
        end

        # @return [Array<Array<String>>] the other columns of each index that starts with the column
        def indexes_from(column)
          lists = indexes.map { |index| Array(index.columns) }
          lists.select { |columns| columns.first == column.to_s }.map { |columns| columns.drop(1) }
        end

        # @return [Array<String>] the tables of the database
        def tables = @catalog.fetch(:tables) { ActiveRecordRows.lease(model, &:tables) }

        # @return [Boolean] whether a validated foreign key links the column to that table and key
        def references?(column, table, key)
          keys = @catalog.fetch(:keys) { ActiveRecordRows.lease(model) { |connection| connection.foreign_keys(model.table_name) } }
          keys.any? { |found| found.column == column && found.to_table == table && found.primary_key == key && found.validated? }
        end

        # @return [Symbol, nil] the column of single table inheritance
        def inheritance_column
          model.inheritance_column.to_sym if ActiveRecordRows.inherited?(model)
        end

        # Asks the model as ActiveRecord does, because applications override `find_sti_class`, and the column may be an enum.
        # @param value [Object, nil] the driver's value of {#inheritance_column}
        # @return [Class, nil] nil if no class has that name
        def class_of(value)
          column = model.inheritance_column
          value = value.to_i if value && model.columns_hash.fetch(column).type == :integer # the driver may return text
          model.send(:discriminate_class_for_record, { column => value })
        rescue ::ActiveRecord::SubclassNotFound
          nil
        end

        # @param model [Class] a model of this table
        # @return [Hash{Object => Class}] the class and its loaded subclasses, by the stored value of {#inheritance_column};
        #   without classes that have no value, such as those that an enum does not name
        def classes_of(model)
          type = model.type_for_attribute(model.inheritance_column)
          [model, *model.descendants].to_h { |one| [type.serialize(one.sti_name), one] }.except(nil)
        end

        private

        attr_reader :model

        def indexes
          @catalog.fetch(:indexes) { ActiveRecordRows.lease(model) { |connection| connection.indexes(model.table_name) } }
        end

        def whole_indexes = indexes.select { |index| index.where.nil? }
        def each_column = model.column_names.to_h { |name| [name, yield(name)] }.freeze

        def models = [@model, *ActiveRecordRows.subclasses(@model)]

        # Returns the first class whose instances may return another value than the row's.
        def reading_class(name)
          models.find { |one| callbacks?(one) || own_reader(one, name) || (one != @model && other_type?(one, name(name))) }
        end

        def callbacks?(model)
          EVENTS.any? { |event| model.__callbacks[event]&.any? } && callbacks(model).any?
        end

        def callbacks(model)
          EVENTS.flat_map do |event|
            filters = model.__callbacks.fetch(event, []).map(&:filter).reject { |filter| secure_token?(filter) }
            filters.map { |filter| ["after_#{event}", filter] }
          end
        end

        # Since the defaults of Rails 7.1, has_secure_token adds an after_initialize callback, which acts on new records only.
        def secure_token?(filter)
          macro = ::ActiveRecord::SecureToken::ClassMethods.instance_method(:has_secure_token)
          filter.is_a?(Proc) && filter.source_location&.first == macro.source_location.first
        end

        def written_callback(model, filter)
          case filter
          when Symbol
            method = model.instance_method(filter) if model.method_defined?(filter) || model.private_method_defined?(filter)
            "#{filter.inspect}#{ModelReasons.place(method)}"
          when Proc then "with a block#{ModelReasons.place(filter)}"
          else filter.class.name
          end
        end

        LIBRARY = /\A(?:ActiveModel|ActiveRecord)::/
        EVENTS = %i[find initialize].freeze
        private_constant :LIBRARY, :EVENTS

        # ActiveRecord wraps types (encrypted, serialized, array); the
        # application may define the wrapped type.
        def custom(type)
          return type.class unless LIBRARY.match?(type.class.name.to_s)

          coder = type.coder if type.respond_to?(:coder)
          coder = coder.class unless coder.nil? || coder.is_a?(Module)
          return coder if coder && coder.name != "JSON" && !LIBRARY.match?(coder.name.to_s)

          inner = %i[subtype cast_type].filter_map { |name| type.public_send(name) if type.respond_to?(name) }
          inner.filter_map { |one| custom(one) unless one.equal?(type) }.first
        end

        # @return [String, Symbol, nil] the column or its alias, if the application defines its reader
        def own_reader(model, name)
          column = name(name)
          return column if written_by_hand?(model, column)

          given = name.to_sym
          given if given != column.to_sym && written_by_hand?(model, given)
        end

        def written_by_hand?(model, name)
          return true if model.private_method_defined?(name) # calling a private method raises NoMethodError
          return false unless model.method_defined?(name)

          owner = model.instance_method(name).owner
          !(owner.is_a?(::ActiveRecord::AttributeMethods::GeneratedAttributeMethods) || owner == ::ActiveRecord::AttributeMethods::PrimaryKey)
        end

        def other_type?(klass, name)
          klass.define_attribute_methods
          !(klass.type_for_attribute(name) == @model.type_for_attribute(name)) # rubocop:disable Style/InverseMethods -- `!=` is not TimeZoneConverter's
        end

        def plain(name)
          column = @model.columns_hash.fetch(name)
          type = unwrapped(@model.type_for_attribute(name))
          coder, classes = PLAIN[column.type]
          return unless coder && classes.include?(type.class.name)
          return if column.respond_to?(:array) && column.array
          return if @dialect == :sqlite && (UNCHECKED_BY_SQLITE.include?(coder) || coarse?(coder, column))
          return if @dialect == :other && %i[datetime json].include?(coder)

          coder
        end

        # SQLite stores more fractional digits than the column's precision allows.
        def coarse?(coder, column) = coder == :datetime && column.precision && column.precision < MILLISECONDS

        def with_zone?(name)
          return false unless @dialect == :postgres

          column = @model.columns_hash.fetch(name)
          !column.array && column.sql_type.match?(/\A(timestamp.* with time zone|timestamptz)/)
        end

        def unwrapped(type)
          type = unnormalized(type)
          zone_converter?(type) ? type.__getobj__ : type
        end

        # `normalizes` changes the values that are written and compared, never those that are read.
        def unnormalized(type) = normalized?(type) ? unnormalized(type.__getobj__) : type
        def normalized?(type) = type.class.name.to_s.match?(NORMALIZED)

        def utc?(name)
          json = ::ActiveSupport::JSON::Encoding
          return false unless json.use_standard_json_time_format && json.time_precision == MILLISECONDS
          return false unless ::ActiveRecord.default_timezone == :utc

          !@zoned.fetch(name) || (zone = Time.zone).nil? || UTC_NAMES.include?(zone.tzinfo.name)
        end

        # TimeZoneConverter delegates `is_a?` to the wrapped type; only Module#=== finds the converter itself.
        def zone_converter?(type)
          case type
          when ::ActiveRecord::AttributeMethods::TimeZoneConversion::TimeZoneConverter then true
          else false
          end
        end
      end
    end
  end
end
