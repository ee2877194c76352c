# frozen_string_literal: true

module Castellan
  # The name of a database as it may be shown to anybody.
  #
  #   PublicUrl.of("postgres://ada:secret@db/shop?password=other")   # => "postgres://db/shop?password=…"
  #   PublicUrl.of("db/shop.sqlite3")                                # => "db/shop.sqlite3"
  module PublicUrl
    # @param name [String, nil] a URL, or a path or a name
    # @return [String] without passwords, and without the user that stands before one; what may be part of a password is left out, too
    def self.of(name) = name.to_s.sub(%r{//.*@}m, "//").gsub(/([?&]\w*password=)[^&]*/i, '\1…')
  end
end
