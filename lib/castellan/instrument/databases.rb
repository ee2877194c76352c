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
      NONE = [nil, 1].freeze
      private_constant :NONE
      @names = {} # by object_id of a connection, which is never reused
      @places = Hash.new { |places, library| places[library] = {} }
      @numbered = {}
      @lock = Mutex.new

      class << self
        # @param library [String] frozen
        # @param connection [Object]
        # @yieldreturn [Object] equal for connections to one database; called once per connection
        # @return [String]
        def name(library, connection)
          id = connection.object_id
          @names[id] || @lock.synchronize do
            @names.clear if @names.size >= MOST
            @names[id] = name_of(library, yield)
          end
        end

        # @param name [String, nil] the name of a statement
        # @return [Integer] the number of its database; 1 if the library has only one
        def number(name) = @numbered.fetch(name, NONE).last

        # @return [Boolean] whether the library sent a statement of this name
        def of?(library, name) = name == library || @numbered.fetch(name, NONE).first == library

        private

        def name_of(library, place)
          places = @places[library]
          places.clear if places.size >= MOST
          places[place] ||= numbered(library, places.size + 1)
        end

        def numbered(library, number)
          return library if number == 1

          name = "#{library} #{number}".freeze
          @numbered[name] ||= [library, number].freeze
          name
        end
      end
    end
  end
end
