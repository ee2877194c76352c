# frozen_string_literal: true

module Castellan
  module Instrument
    # Names statements that their library does not name, so that equal SQL to two databases stays apart.
    #
    #   Databases.name("Sequel", DB) { DB.opts[:database] }         # => "Sequel"
    #   Databases.name("Sequel", OTHER) { OTHER.opts[:database] }   # => "Sequel 2"
    #   Databases.number("Sequel 2")                                # => 2
    #
    # The name is the library's; from the second database on, a number follows. After MOST databases of a
    # library the numbers start again.
    module Databases
      MOST = 1_000
      NUMBERED = /\A(?:Sequel|pg|SQLite3) (\d+)\z/
      private_constant :NUMBERED
      @names = BoundedCache.new(limit: MOST) # by the object_id of a connection, which Ruby never reuses
      @places = BoundedCache.new(limit: MOST)
      @counts = Hash.new(0)
      @lock = Mutex.new

      class << self
        # @param library [String] "Sequel", "pg" or "SQLite3"
        # @param connection [Object]
        # @yieldreturn [Object] identifies the database of the connection; called once per connection
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
        # @return [Integer] the number of the database; 1 for the library's first
        def number(name) = Integer(name.to_s[NUMBERED, 1] || 1)
      end
    end
  end
end
