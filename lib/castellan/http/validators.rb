# frozen_string_literal: true

require "digest"

module Castellan
  module HTTP
    # Entity tags (RFC 9110 §8.8.3), made of what the body is made of, never of the body.
    #
    #   Validators.etag("users-v17")                     # => "\"users-v17\""
    #   Validators.etag("users-v17", weak: true)         # => "W/\"users-v17\""
    #   Validators.etag("users-v17", coding: "gzip")     # => "\"users-v17-gzip\"": other bytes, so another strong tag
    #   Validators.same_weakly?("W/\"a\"", "\"a\"")      # => true
    #
    # A strong tag promises equal bytes: give it a token that names everything which the bytes depend on, the form of the
    # document and the viewer too. Where that is not known (a block without `columns:`), use `weak: true`.
    module Validators
      PLAIN = /\A[!#-~]{1,64}\z/
      private_constant :PLAIN

      module_function

      # @param token [String] any bytes; taken as it is when it is short and made of the characters of RFC 9110's `etagc`
      #   in ASCII, digested (SHA-256, 132 bits of it) otherwise
      # @param weak [Boolean]
      # @param coding [String, nil] the content coding of the representation, when it is not identity
      # @return [String] with its quotation marks
      def etag(token, weak: false, coding: nil)
        opaque = opaque(token)
        opaque = "#{opaque}-#{coding}" if coding
        weak ? "W/\"#{opaque}\"" : "\"#{opaque}\""
      end

      # @return [Boolean] §8.8.3.2, strong comparison: both strong and equal; what If-Match and ranges need
      def same_strongly?(one, other)
        one == other && !weak?(one)
      end

      # @return [Boolean] §8.8.3.2, weak comparison: equal but for the mark; what If-None-Match needs
      def same_weakly?(one, other)
        one.delete_prefix("W/") == other.delete_prefix("W/")
      end

      # @return [Boolean]
      def weak?(etag)
        etag.start_with?("W/")
      end

      def opaque(token)
        raise ArgumentError, "an entity tag needs a token, got #{token.inspect}" if token.nil? || token.empty?
        return token if token.ascii_only? && PLAIN.match?(token)

        [Digest::SHA256.digest(token)].pack("m0").tr("+/", "-_")[0, 22]
      end
      private_class_method :opaque
    end
  end
end
