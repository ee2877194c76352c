# frozen_string_literal: true

require_relative "document"
require_relative "recording"
require_relative "option_check"

module Castellan
  # Compares documents rendered from rows with the same documents from models.
  #
  #   result = Castellan.verify { UserResource.render(include: "roles") }
  #   result.differences   # => [#<Difference users 7: email is nil by rows, "ada@…" by the models>]
  #   result.value         # => the document as rendered from the models
  #
  # If they differ, the document from the models is served. {Middleware} verifies a sample of an application's
  # requests. The models load associations lazily, one query per record and relationship. The block's
  # documents bypass the cache; {Serializer} documents are compared, too. A {Document::Stream} is compared as
  # a whole, except streams of more than 10,000 records, which {Verification#passed_over} counts.
  module Verify
    # @yieldreturn [Object] a document, its bytes, or an object that contains rendered documents
    # @return [Verification] with the value of the block
    def self.call
      verification = Verification.new
      verification.value = Recording.open(verification) { rendered(yield) }
      verification
    end

    # @return [Verification, nil] the innermost open verification
    def self.current = Recording.innermost(Verification)

    # Renders a document now, because after the block it can no longer be compared.
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
