# frozen_string_literal: true

module Castellan
  module Instrument
    # What statements are called that no ORM has a name for: after the library that sends them, and from the second of its databases
    # on with a number. So the same text sent to two databases is known for two statements.
    #
    #   Databases.name("Sequel", DB) { DB.opts[:database] }         # => "Sequel"
    #   Databases.name("Sequel", OTHER) { OTHER.opts[:database] }   # => "Sequel 2"
    #   Databases.number("Sequel 2")                                # => 2
    #
    # There are MOST names of a library. Of databases that are opened one after the other, those that come together have different ones;
    # where one piece of work asks more than MOST, some have the same name and count as one.
    module Databases
      MOST = 1_000
      NONE = [nil, 1].freeze
      PLACE_BITS = 16
      private_constant :NONE, :PLACE_BITS
      @known = {}
      @names = {}
      @numbered = {}
      @all = []
      # Of each connection a number that no other has; its last bits are the name's place in @all. Where 30 keys of a WeakMap have one
      # value, Ruby 3.1 crashes when the collector moves objects (Bug #19529).
      @of = ObjectSpace::WeakMap.new
      @connections = 0
      @lock = Mutex.new

      class << self
        # @param library [String] frozen
        # @param connection [Object] asked for once
        # @yieldreturn [Object] what is the same of two connections to one database
        # @return [String]
        def name(library, connection)
          number = @of[connection] || @lock.synchronize { @of[connection] ||= number_of(called(library, yield)) }
          @all[number & ((1 << PLACE_BITS) - 1)]
        end

        # @param name [String, nil] of a statement
        # @return [Integer] 1 where it is of the only one
        def number(name) = @numbered.fetch(name, NONE).last

        # @return [Boolean] whether a statement of this name was sent by that library
        def of?(library, name) = name == library || @numbered.fetch(name, NONE).first == library

        private

        def number_of(name) = ((@connections += 1) << PLACE_BITS) | @all.index(name)

        def called(library, database)
          known = @known[library] ||= {}
          known.fetch(database) do
            known.shift if known.size >= MOST
            known[database] = next_name(library)
          end
        end

        def next_name(library)
          names = @names[library] ||= []
          names.size < MOST ? names.push(added(library, names.size + 1)).last : names.rotate!.last
        end

        def added(library, number)
          name = number == 1 ? library : "#{library} #{number}".freeze
          @numbered[name] = [library, number].freeze unless number == 1
          @all << name
          name
        end
      end
    end
  end
end
