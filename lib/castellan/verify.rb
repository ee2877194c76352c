# frozen_string_literal: true

require_relative "document"
require_relative "recording"

module Castellan
  # Renders documents from rows and from models, compares them, and returns the latter if they differ.
  #
  #   result = Castellan.verify { UserResource.render(include: "roles") }
  #   result.differences   # => [#<Difference users 7: last_login_at is nil by rows, "2024-03-01T…" by the models>]
  #   result.value         # => the document that was rendered from models
  #
  # {Middleware} verifies a sample of the requests. Models load associations lazily, with one query per record
  # and relationship. Documents in the block bypass the cache. Includes documents of {Serializer}. A
  # {Document::Stream} is compared as a whole; streams of more than 10,000 records are skipped and counted in
  # {Verification#passed_over}.
  module Verify
    # @yieldreturn [Object] a document, its bytes, or an object that contains rendered documents
    # @return [Verification] with the value of the block
    def self.call
      verification = Verification.new
      verification.value = Recording.open(verification) { rendered(yield) }
      verification
    end

    # @return [Verification, nil] the innermost open verification
    def self.current
      recording = Recording.current
      recording = recording.parent until recording.nil? || recording.observer.is_a?(Verification)
      recording&.observer
    end

    # Renders a document immediately, because after the comparison it would be too late.
    def self.rendered(value)
      return value.to_json if value.is_a?(Document)

      body = value.is_a?(Array) ? value[2] : value
      body.to_json if body.is_a?(Document)
      body.whole if body.is_a?(Document::Stream)
      value
    end
    private_class_method :rendered
  end
end

require_relative "verify/difference"
require_relative "verify/loaded_records"
require_relative "verify/facts"
require_relative "verify/verification"
require_relative "verify/middleware"

Castellan::Document.verifier = Castellan::Verify
