# frozen_string_literal: true

module Castellan
  # Formats the URL or name of a database for display, without passwords.
  #
  #   PublicUrl.of("postgres://ada:secret@db/shop?password=other")   # => "postgres://db/shop?password=…"
  #   PublicUrl.of("db/shop.sqlite3")                                # => "db/shop.sqlite3"
  module PublicUrl
    # @param name [String, nil] a URL, path or name
    # @return [String] without passwords and user names; removes too much rather than part of a password
    def self.of(name) = name.to_s.sub(%r{//.*@}m, "//").gsub(/([?&]\w*password=)[^&]*/i, '\1…')
  end
end
