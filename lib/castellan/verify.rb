# frozen_string_literal: true

require_relative "document"
require_relative "recording"

module Castellan
  # Compares documents written from rows with the same documents written from records, and serves those of the records where the two differ.
  #
  #   result = Castellan.verify { UserResource.render(include: "roles") }
  #   result.differences   # => [#<Difference users 7: last_login_at is nil by rows, "2024-03-01T…" by the models>]
  #   result.value         # => the document, as the models have it
  #
  # {Middleware} does so with a sample of an application's requests. The records' associations are loaded lazily: a statement for each
  # record and relationship. Whatever is rendered inside the block is compared; kept documents are written anew, and what a
  # {Serializer} writes from rows is written from its records too. A {Document::Stream} is written whole, unless it has more than
  # 10,000 records: {Result#passed_over} counts these.
  module Verify
    # @yieldreturn [Object] a document, its bytes, or anything that was made by rendering some
    # @return [Result]
    def self.call
      verification = Verification.new
      value = Recording.open(verification) { rendered(yield) }
      Result.new(value, verification.documents, verification.differences.freeze, verification.passed_over)
    end

    # @return [Verification, nil] the innermost one that is open
    def self.current
      recording = Recording.current
      recording = recording.parent until recording.nil? || recording.observer.is_a?(Verification)
      recording&.observer
    end

    # A document without bytes yet would be written after the comparison has ended.
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
require_relative "verify/result"
require_relative "verify/loaded_records"
require_relative "verify/facts"
require_relative "verify/verification"

Castellan::Document.verifier = Castellan::Verify

module Castellan
  module Verify
    autoload :Middleware, "castellan/verify/middleware"
  end
end
