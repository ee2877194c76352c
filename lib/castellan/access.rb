# frozen_string_literal: true

module Castellan
  # One walk through an association of one record, which made a query. Frozen.
  #
  #   Access.new(model: "User", association: :roles, load: the_load_of_the_record)
  Access = Struct.new(:model, :association, :load, keyword_init: true) do
    def initialize(**)
      super
      freeze
    end
  end
end
