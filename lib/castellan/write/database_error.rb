# frozen_string_literal: true

module Castellan
  module Write
    # Translates errors of the ORM and the database into errors for the client.
    #
    #   DatabaseError.new(models, pointers).translate(error)   # => a BadRequest, or nil
    #
    # The status is 409 for unique and foreign keys and a stale lock column, 422 for other constraints and
    # validations, and 503 if the database is unavailable.
    class DatabaseError
      # Class names, because an ORM may not be loaded. The first match counts.
      KINDS = {
        "ActiveRecord::RecordInvalid" => :invalid, "ActiveRecord::RecordNotSaved" => :invalid,
        "ActiveRecord::RecordNotDestroyed" => :invalid, "Sequel::ValidationFailed" => :invalid, "Sequel::HookFailed" => :invalid,
        "ActiveRecord::Rollback" => :invalid, "Sequel::Rollback" => :invalid,
        "ActiveRecord::StaleObjectError" => :stale, "Sequel::NoExistingObject" => :stale,
        "ActiveRecord::DeleteRestrictionError" => :referenced,
        "ActiveRecord::RecordNotUnique" => :taken, "Sequel::UniqueConstraintViolation" => :taken,
        "ActiveRecord::InvalidForeignKey" => :referenced, "Sequel::ForeignKeyConstraintViolation" => :referenced,
        "ActiveRecord::NotNullViolation" => :null, "Sequel::NotNullConstraintViolation" => :null,
        "Sequel::CheckConstraintViolation" => :refused, "ActiveRecord::CheckViolation" => :refused,
        "ActiveRecord::ValueTooLong" => :refused, "ActiveRecord::RangeError" => :refused, "ActiveModel::RangeError" => :refused,
        "ActiveRecord::AssociationTypeMismatch" => :refused, "ActiveRecord::ReadOnlyRecord" => :read_only,
        "ActiveRecord::ReadonlyAttributeError" => :constant,
        # A :through association whose records belong to a record in between.
        "ActiveRecord::HasManyThroughCantAssociateThroughHasOneOrManyReflection" => :between,
        "ActiveRecord::HasOneThroughCantAssociateThroughHasOneOrManyReflection" => :between,
        "ActiveRecord::HasManyThroughNestedAssociationsAreReadonly" => :between,
        "ActiveRecord::HasOneThroughNestedAssociationsAreReadonly" => :between,
        "ActiveRecord::SerializationFailure" => :busy, "ActiveRecord::Deadlocked" => :busy, "ActiveRecord::LockWaitTimeout" => :busy,
        "ActiveRecord::StatementTimeout" => :busy,
        "ActiveRecord::PreparedStatementCacheExpired" => :busy,
        "Sequel::SerializationFailure" => :busy, "Sequel::DatabaseLockTimeout" => :busy,
        "ActiveRecord::ConnectionNotEstablished" => :away, "ActiveRecord::ConnectionFailed" => :away,
        "ActiveRecord::NoDatabaseError" => :away,
        "ActiveRecord::QueryCanceled" => :away, "Sequel::DatabaseConnectionError" => :away, "Sequel::DatabaseDisconnectError" => :away,
        "Sequel::PoolTimeout" => :away
      }.freeze
      # Errors of the drivers for which the ORMs have no class.
      CAUSES = {
        "PG::CheckViolation" => :refused, "PG::DataException" => :refused, "PG::ExclusionViolation" => :taken,
        "PG::RaiseException" => :refused, # RAISE EXCEPTION of a trigger
        "PG::WithCheckOptionViolation" => :refused, # of a view
        "PG::ProgramLimitExceeded" => :refused, # a text that is too long for its index
        "PG::RestrictViolation" => :referenced, "PG::InsufficientPrivilege" => :forbidden,
        "PG::QueryCanceled" => :away, "PG::LockNotAvailable" => :busy, "PG::ReadOnlySqlTransaction" => :away,
        "PG::TRSerializationFailure" => :busy, "PG::TRDeadlockDetected" => :busy,
        "PG::InvalidSqlStatementName" => :busy, # after a reset, the session has no prepared statements
        "PG::ConnectionBad" => :away, "PG::AdminShutdown" => :away, "PG::CannotConnectNow" => :away, "PG::UnableToSend" => :away,
        "SQLite3::ConstraintException" => :refused, "SQLite3::MismatchException" => :refused,
        "SQLite3::BusyException" => :busy, "SQLite3::LockedException" => :busy, "SQLite3::ReadOnlyException" => :away
      }.freeze
      # Numbers of MySQL's errors for which the ORMs have no class, or Sequel has none.
      NUMBERS = {
        1264 => :refused, 1265 => :refused, 1366 => :refused, 1406 => :refused, # the value does not fit its column
        1644 => :refused, # SIGNAL of a trigger
        3819 => :refused, 4025 => :refused, # CHECK of MySQL, of MariaDB
        1290 => :away, 1836 => :away, # the server is read-only
        1969 => :away, 3024 => :away # the statement took too long
      }.freeze
      # PostgreSQL also names the columns that others refer to, if the record is still used.
      POSTGRES_COLUMNS = /Key \(([^)]+)\)(?!.* is (?:still )?referenced from table )/
      # SQLite names "table.column", MySQL 'column' or `database`.`table`.`column`, after the value.
      OTHER_COLUMNS = /constraint failed: ([\w., ]+)|\bcolumn ['`](?:[^`]+`\.`)*([^'`]+)/i
      STATEMENT = %w[ActiveRecord::StatementInvalid Sequel::DatabaseError].freeze
      STOPPED = "a callback of the model or a trigger of the database"
      private_constant :STOPPED, :STATEMENT, :KINDS, :CAUSES, :NUMBERS, :POSTGRES_COLUMNS, :OTHER_COLUMNS

      # @param error [Exception]
      # @return [Symbol, nil] the kind of database error; nil for any other error
      def self.kind(error)
        names = error.class.ancestors.map(&:name)
        cause = driver_error(error)
        kind = names.filter_map { |name| KINDS[name] || CAUSES[name] }.first
        kind ||= cause.class.ancestors.filter_map { |one| CAUSES[one.name] }.first
        kind || NUMBERS[number(cause)]
      end

      # @return [Integer, nil] the number of an error of the gems mysql2 and trilogy
      def self.number(cause)
        return unless cause.class.ancestors.any? { |one| one.name.to_s.match?(/\A(?:Mysql2|Trilogy)\b/) }

        cause.respond_to?(:error_number) ? cause.error_number : cause.error_code
      end
      private_class_method :number

      # @return [Exception] the driver's error
      def self.driver_error(error)
        error.cause || error
      end

      # @param error [Exception]
      # @return [Boolean] whether the database is unavailable at the moment
      def self.unavailable?(error)
        kind = kind(error)
        %i[away busy].include?(kind)
      end

      # @return [BadRequest] 503
      def self.unavailable
        BadRequest.new("the database cannot answer at the moment; try again", status: 503, title: "Service unavailable")
      end

      # @param members [Hash{String => String}] JSON pointers by column
      # @param linked [Array<(String, String, Array<Object>)>] for each relationship that is written its name, JSON pointer
      #   and records
      # @param suspects [Array<String>] JSON pointers to the values that the database is likely to refuse
      # @param written [Array<String>] JSON pointers to what the request writes. An error of a constraint of several columns
      #   names the last of these: a slug, not the account in which it is taken
      def initialize(models, members, linked: [], suspects: [], written: [])
        @models = models
        @members = members
        @linked = linked
        @suspects = suspects
        @written = written
      end

      # @param error [Exception]
      # @return [BadRequest, nil] nil if no client can fix the error, so that it must be raised again
      def translate(error)
        kind = self.class.kind(error) or return
        record = error.record if error.respond_to?(:record) && error.record
        record ||= error.model if error.respond_to?(:model) && !error.model.is_a?(Class)
        case kind
        when :invalid then invalid(record)
        when :stale then problem(409, "the record was changed by another request; read it again", "Conflict")
        when :taken then problem(409, "is taken", "Conflict", pointer_of(error))
        when :referenced then referenced(error)
        when :null then null(pointer_of(error))
        when :refused then problem(422, "is refused by the database", "Invalid value", pointer_of(error) || suspect)
        when :forbidden then forbidden(error)
        when :read_only then problem(403, "the record is read-only", "Forbidden")
        when :between then problem(403, "the relationship cannot be changed here: its records belong to records in between", "Forbidden")
        when :constant then problem(403, "cannot be changed", "Forbidden", @members[error.message]) # the message is the attribute
        else self.class.unavailable
        end
      end

      # Reading a value of some types (hstore, tsvector, types of extensions) may raise any SQL error.
      # @param pointers [Array<String>] JSON pointers to the written values of such types
      # @return [BadRequest, nil] nil if it is not the error of a statement, or no such value was written
      def unread(error, pointers)
        return if pointers.empty? || !error.class.ancestors.map(&:name).intersect?(STATEMENT)

        problem(422, "is refused by the database", "Invalid value", pointers.first)
      end

      # @param record [Object, nil] a record with validation errors
      # @return [InvalidDocument]
      def invalid(record)
        found = problems(record)
        found = @linked.flat_map(&:last).flat_map { |other| problems(other) } if found.empty?
        found = [["the record was not written: #{STOPPED} stopped it", @members["base"]]] if found.empty?
        InvalidDocument.new(found.uniq.map { |text, pointer| problem(422, text, "Invalid value", pointer, named: true) })
      end

      private

      # The attributes of another record (of a relationship, or written by a callback) are no members of this document.
      # @return [Array<(String, String)>] messages and JSON pointers
      def problems(record)
        return [] unless record

        found = Models.for(record.class).problems(record)
        key, pointer, = @linked.find { |_, _, others| others.any? { |other| other.equal?(record) } }
        return found.map { |_, text| ["#{key}: #{text}", pointer] } if key

        found.map { |name, text| [text, (@members[name.to_s] if record.is_a?(@models.model))] }
      end

      def problem(status, text, title, pointer = nil, named: false)
        name = pointer&.split("/")&.last
        text = "#{name} #{text}" if name && !named
        text = "the record #{text}" if !name && !named && text.start_with?("is ", "must ", "cannot ")
        BadRequest.new(text, status: status, title: title, pointer: pointer)
      end

      # Row level security and triggers refuse a row. A missing GRANT is a mistake of the application.
      def forbidden(error)
        cause = self.class.driver_error(error)
        return if cause.is_a?(::PG::Error) && cause.result&.error_field(::PG::PG_DIAG_SOURCE_FUNCTION) == "aclcheck_error"

        problem(403, "the database does not allow you to write this", "Forbidden")
      end

      def referenced(error)
        pointer = pointer_of(error)
        return problem(409, "refers to a record that does not exist", "Conflict", pointer) if pointer

        problem(409, "the record is used by others, or names one that does not exist", "Conflict", nil)
      end

      # A member that leaves a to-many relationship may need its owner.
      def null(pointer)
        return problem(422, "must not be null", "Invalid value", pointer) if pointer

        key, pointer, = @linked.first if @linked.one?
        text = "#{"#{key}: " if key}a column that the database requires would be empty"
        problem(422, text, "Invalid value", pointer, named: true)
      end

      # PostgreSQL does not name the column of a value that is too long, or that its type cannot read.
      def suspect = (@suspects.first if @suspects.one?)

      def pointer_of(error)
        pointers = columns_of(error).filter_map { |column| @members[column] }
        (pointers & @written).last || pointers.first
      end

      # PostgreSQL names the constraint and the column; the messages of others name columns.
      def columns_of(error)
        cause = self.class.driver_error(error)
        result = cause.result if cause.respond_to?(:result)
        unless result
          names = cause.message.scan(OTHER_COLUMNS).flatten.compact.last.to_s
          return names.split(",").map { |name| name.strip.split(".").last }
        end

        column = result.error_field(::PG::PG_DIAG_COLUMN_NAME) and return [column]
        constraint = result.error_field(::PG::PG_DIAG_CONSTRAINT_NAME) or return []
        found = @models.index_columns(constraint)
        found.empty? ? result.error_field(::PG::PG_DIAG_MESSAGE_DETAIL).to_s[POSTGRES_COLUMNS, 1].to_s.split(/,\s*/) : found
      end
    end
  end
end
