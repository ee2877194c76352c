# frozen_string_literal: true

module Castellan
  module Instrument
    # Names statements for which the library has no name: after the library and, from its second database on,
    # a number. So equal SQL sent to two databases is two statements.
    #
    #   Databases.name("Sequel", DB) { DB.opts[:database] }         # => "Sequel"
    #   Databases.name("Sequel", OTHER) { OTHER.opts[:database] }   # => "Sequel 2"
    #   Databases.number("Sequel 2")                                # => 2
    #
    # After MOST databases of a library the numbers start again.
    module Databases
      MOST = 1_000
      NUMBERED = /\A(?:Sequel|pg|SQLite3) (\d+)\z/
      private_constant :NUMBERED
      @names = BoundedCache.new(limit: MOST) # by object_id of a connection, which is never reused
      @places = BoundedCache.new(limit: MOST)
      @counts = Hash.new(0)
      @lock = Mutex.new

      class << self
        # @param library [String] "Sequel", "pg" or "SQLite3"
        # @param connection [Object]
        # @yieldreturn [Object] equal for connections to one database; called once per connection
        # @return [String]
        def name(library, connection)
          id = connection.object_id
          @names.fetch(id) do
            place = [library, yield]
            number = @lock.synchronize { @places.fetch(place) { @counts[library] = (@counts[library] % MOST) + 1 } }
            number == 1 ? library : -"#{library} #{number}"
          end
        end

        # @param name [String, nil] the name of a statement
        # @return [Integer] the number of its database; 1 if the library has only one
        def number(name) = Integer(name.to_s[NUMBERED, 1] || 1)
      end
    end
  end
end
