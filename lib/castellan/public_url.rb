# frozen_string_literal: true

module Castellan
  # Formats a database URL or name for display, without passwords.
  #
  #   PublicUrl.of("postgres://ada:secret@db/shop?password=other")   # => "postgres://db/shop?password=…"
  #   PublicUrl.of("db/shop.sqlite3")                                # => "db/shop.sqlite3"
  module PublicUrl
    # @param name [String, nil] a URL, path or name
    # @return [String] without passwords and the user before one; anything that may belong to a password is
    #   removed, too
    def self.of(name) = name.to_s.sub(%r{//.*@}m, "//").gsub(/([?&]\w*password=)[^&]*/i, '\1…')
  end
end
