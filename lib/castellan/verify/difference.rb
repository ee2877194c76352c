# frozen_string_literal: true

module Castellan
  module Verify
    # Something that rows and models say differently.
    #
    #   difference.to_s   # => "users 7: email is nil by rows, \"ada@example.com\" by the models"
    #
    # `attribute` is the name of the member, nil where the record itself is there for one and not for the other. Values are those of
    # the documents; they may be personal, so think where they are written to.
    Difference = Struct.new(:resource, :id, :attribute, :rows, :models) do
      # @return [String]
      def to_s
        place = id ? "#{resource} #{id}" : resource
        "#{place}: #{attribute || "the record"} is #{shown(rows)} by rows, #{shown(models)} by the models"
      end

      private

      def shown(value)
        value == Facts::ABSENT ? "not there" : value.inspect
      end
    end
  end
end
