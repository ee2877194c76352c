# frozen_string_literal: true

module Castellan
  module Rows
    class SequelRows
      # Writes the SQL of a dataset's columns, and chooses the coders that write their values as JSON.
      #
      #   types = ColumnTypes.new(MailLog.dataset.naked, MailLog, :sqlite)
      #   types.coder(:number)            # => :integer
      #   types.coder(:value_net)         # => :decimal; nil on SQLite, whose driver returns floats
      #   types.cast(:value_net, 12.5)    # => BigDecimal("12.5")
      #
      # A column has a coder if the driver returns the same value as Sequel; others use Sequel's conversion
      # for the type. Columns without a schema (expressions of a view) keep the driver's value, as in Sequel.
      class ColumnTypes
        PLAIN = { integer: :integer, boolean: :boolean, float: :float, decimal: :decimal, date: :date, datetime: :datetime,
                  string: :text }.freeze
        # On other databases, Sequel reads the rows, and only these values need no conversion.
        WRITTEN_AS_THEY_ARE = %i[integer boolean float string].freeze
        IDENTIFYING = %i[integer text].freeze
        KINDS = { **PLAIN, string: :text, uuid: :uuid }.freeze
        JSON_TYPES = %w[json jsonb].freeze
        NUMERIC = 1700
        ACCESSORS = %r{/sequel/model/base\.rb\z}
        CLOCK = /\d\d:\d\d:\d\d(\.\d+)?/ # does not match infinity
        private_constant :PLAIN, :IDENTIFYING, :CLOCK, :KINDS, :WRITTEN_AS_THEY_ARE, :JSON_TYPES, :NUMERIC, :ACCESSORS

        # @param column [Hash] a column of Sequel's schema
        # @return [Symbol, nil] Sequel's name for its type, or :uuid, for which Sequel has none
        def self.type(column) = column[:db_type].to_s.match?(/\Auuid\z/i) ? :uuid : column[:type]

        # @return [Symbol, nil] the table's primary key; nil without one or with a composite one
        # @return [String] the quoted table, or its alias
        attr_reader :primary_key, :table

        def initialize(dataset, model, dialect)
          @model = model
          @database = dataset.db
          @table = dataset.literal(dataset.first_source_alias)
          @dataset = dataset
          @catalog = BoundedCache.new(limit: 2)
          @postgres = dialect == :postgres
          @sqlite = dialect == :sqlite
          @schema = schema(dataset)
          keys = @schema.select { |_, column| column[:primary_key] }.keys
          @primary_key = keys.first if keys.size == 1
          @coders = dataset.columns.to_h { |name| [name, plain(@schema[name])] }.freeze
          freeze
        end

        # @return [String] see {ActiveRecordRows::ColumnTypes#name}; Sequel has no aliases of columns
        def name(name) = name.to_s
        def quote(name) = @dataset.literal(::Sequel.identifier(name))

        # @return [String] the quoted table and column
        def qualified(name) = @dataset.literal(::Sequel.qualify(@dataset.first_source_alias, name))

        # (see ActiveRecordRows::ColumnTypes#sql)
        def sql(name) = zoned?(name) ? "timezone('UTC', #{qualified(name)})" : qualified(name)
        def integer?(name) = type(name) == :integer

        # @return [nil] Sequel has no application-defined types
        def custom_type(_name) = nil

        # @return [String] an SQL literal
        def literal(value) = @dataset.literal(value)

        # (see ActiveRecordRows::ColumnTypes#coder)
        def coder(name)
          coder = @coders.fetch(name)
          case coder
          when :date then coder if JSONValue.iso_dates?
          when :datetime then coder if JSONValue.iso_dates? && written_as_utc?(name)
          else coder
          end
        end

        # (see ActiveRecordRows::ColumnTypes#identifies?)
        def identifies?(name)
          return false if needs_record?(name)

          coder = @coders.fetch(name)
          coder ? IDENTIFYING.include?(coder) || integer?(name) : [nil, :uuid].include?(type(name))
        end

        # @return [Object] the value as Sequel returns it
        def cast(name, value)
          conversion = @schema[name] && conversion(@schema[name])
          value = value.sub(CLOCK, '\\0+00') if value.is_a?(String) && zoned?(name)
          value.nil? || conversion.nil? ? value : conversion.call(value)
        end

        # (see ActiveRecordRows::ColumnTypes#kind)
        def kind(name)
          column = @schema[name] or return
          type = ColumnTypes.type(column)
          return if column[:db_type].to_s.match?(/money|\[\]/i)
          return :text if (type == :enum && column[:enum_values]) || column[:db_type] == "citext"

          KINDS[type]
        end

        # (see ActiveRecordRows::ColumnTypes#enum)
        def enum(name) = EnumNames.of(@model, name) || @schema.dig(name, :enum_values)&.to_h { |value| [value, value] }

        # Without a database_timezone, Sequel writes a time as it is and reads it as a local time.
        # (see ActiveRecordRows::ColumnTypes#compared)
        def compared(_name, value) = value.is_a?(Time) && @database.timezone.nil? ? value.getlocal : value

        # @return [Boolean]
        def nullable?(name) = @schema.dig(name, :allow_null) != false

        # (see ActiveRecordRows::ColumnTypes#typecast)
        def typecast(name, text)
          value = @database.typecast_value(type(name), text)
          value unless value.is_a?(Integer) && value.bit_length > 63 # Sequel does not write it into a statement
        rescue ::Sequel::InvalidValue
          nil
        end

        # (see ActiveRecordRows::ColumnTypes#database_type)
        def database_type(name) = Dialect.without_length(@schema.dig(name, :db_type).to_s)

        # @return [Symbol, nil]
        def type(name) = @schema[name] && ColumnTypes.type(@schema[name])

        # (see ActiveRecordRows::ColumnTypes#unique?)
        def unique?(column)
          column.to_s == primary_key.to_s || indexes.any? { |index| index[:unique] && index[:columns] == [column.to_sym] }
        end

        # (see ActiveRecordRows::ColumnTypes#indexes_from)
        def indexes_from(column)
          lists = indexes.map { |index| index[:columns].map(&:to_s) }
          lists.select { |columns| columns.first == column.to_s }.map { |columns| columns.drop(1) }
        end

        # (see ActiveRecordRows::ColumnTypes#tables)
        def tables = @catalog.fetch(:tables) { @database.tables.map(&:to_s) }

        # @param table [Symbol, Object] a table, such as a join table
        # @return [Symbol, nil] its primary key; nil without one or with a composite one
        def key_of(table)
          keys = schema_of(table).select { |_, column| column[:primary_key] }
          keys.first.first if keys.size == 1
        end

        # @param table [Symbol, Object]
        # @return [Symbol, nil] the column's type, see {#type}; nil if it is unknown
        def type_in(table, column)
          found = schema_of(table).to_h[column]
          found && ColumnTypes.type(found)
        end

        # A reader of the application or a plugin, or an after_initialize hook, may change the value.
        # @return [Boolean] whether only an instance can read the column
        def needs_record?(name) = !reading_class(name).nil?

        # (see ActiveRecordRows::ColumnTypes#record_reason)
        def record_reason(name)
          model = reading_class(name) or return
          hook = model.instance_method(:after_initialize) if model.method_defined?(:after_initialize)
          return "the hook after_initialize#{ModelReasons.place(hook)} of #{model} may set #{name}" if hook

          "#{model} reads #{name} by its own method#{ModelReasons.place(model.instance_method(name))}"
        end

        # (see ActiveRecordRows::ColumnTypes#inheritance_column)
        def inheritance_column
          @model.sti_key if @model.respond_to?(:sti_key)
        end

        # (see ActiveRecordRows::ColumnTypes#class_of)
        def class_of(value) = @model.sti_class_from_sti_key(cast(@model.sti_key, value))

        # (see ActiveRecordRows::ColumnTypes#classes_of)
        def classes_of(model)
          [model, *subclasses(model)].flat_map { |one| Array(one.sti_key_map[one]).map { |value| [value, one] } }.to_h
        end

        private

        def indexes = @catalog.fetch(:indexes) { @database.indexes(@dataset.first_source_table).values }

        def schema_of(table)
          @database.schema(table)
        rescue ::Sequel::Error
          []
        end

        # Returns the first class (with STI perhaps a subclass) whose instances may
        # return another value than the row's.
        def reading_class(name)
          classes = [@model, *(subclasses(@model) if @model.respond_to?(:sti_key))].compact
          classes.find do |one|
            one.method_defined?(:after_initialize) || one.private_method_defined?(name) ||
              (one.method_defined?(name) && !one.instance_method(name).source_location&.first&.match?(ACCESSORS))
          end
        end

        def subclasses(model) = model.subclasses.flat_map { |subclass| [subclass, *subclasses(subclass)] }

        def schema(dataset)
          known = @model&.db_schema || (table?(dataset) ? schema_of(dataset.first_source_table).to_h : {})
          return known unless (@postgres || @sqlite) && dataset.columns.any? { |name| known[name].nil? || known[name].empty? }

          ResultTypes.of(dataset).merge(known.reject { |_, column| column.empty? })
        end

        def table?(dataset)
          table = dataset.first_source_table
          (table.is_a?(Symbol) || table.is_a?(::Sequel::SQL::QualifiedIdentifier)) && dataset.opts.values_at(:select, :with, :sql).none? &&
            !dataset.joined_dataset?
        end

        def plain(column)
          return unless column
          return on_postgres(column) if @postgres
          return (PLAIN[column[:type]] if WRITTEN_AS_THEY_ARE.include?(column[:type])) unless @sqlite
          return if column[:type] == :decimal || (column[:type] == :datetime && zoned_text?)
          return if column[:type] == :string && conversion(column)

          PLAIN[column[:type]]
        end

        # PostgreSQL's text is the final value for types that Sequel does not convert.
        def on_postgres(column)
          converted = !conversion(column).nil?
          return converted ? :json : :text if JSON_TYPES.include?(column[:db_type])

          return :text unless converted

          # Sequel's schema calls numeric(10,0) an integer, and its conversion returns a BigDecimal
          column[:type] == :integer && column[:oid] == NUMERIC ? :decimal : PLAIN[column[:type]]
        end

        def conversion(column)
          return @database.conversion_procs[column[:oid]] if @postgres

          @database.conversion_procs[column[:db_type].to_s.downcase.sub(/\(.*\)/, "")] if @sqlite
        end

        def zoned?(name) = @postgres && database_type(name) == "timestamp with time zone"
        def zoned_text? = @database.respond_to?(:use_timestamp_timezones?) && @database.use_timestamp_timezones?

        # Sequel converts times with a zone to its application_timezone, otherwise to the machine's time zone.
        def written_as_utc?(name) = utc? && (!zoned?(name) || ::Sequel.application_timezone == :utc)

        # Without a database_timezone, Sequel reads times as local times.
        def utc?
          return false unless [nil, :utc].include?(::Sequel.application_timezone) && ::Sequel.datetime_class == Time

          @database.timezone == :utc || (@database.timezone.nil? && Time.now.utc_offset.zero? && local_utc?)
        end

        def local_utc?
          [nil, "", "UTC", "Etc/UTC"].include?(ENV.fetch("TZ", nil)) && %w[UTC GMT].include?(Time.now.zone)
        end
      end
    end
  end
end
