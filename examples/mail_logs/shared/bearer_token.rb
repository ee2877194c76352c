# frozen_string_literal: true

require "jwt"

# Authenticates both mail log apps by a JSON Web Token (RFC 7519) in the Authorization header (RFC 6750).
#
#   token = BearerToken.issue(subject: "1", expires_at: Time.now + 3600)
#   BearerToken.claims("Bearer #{token}") # => {"sub" => "1", "exp" => 1794052800}
#   BearerToken.claims("Bearer x")        # raises BearerToken::Invalid
#
# Accepts only HS256 and requires `exp`. Reads the secret MAIL_LOGS_JWT_SECRET once, at boot. The default
# secret is public: do not copy it into your app.
module BearerToken
  ALGORITHM = "HS256"
  CHALLENGE = %(Bearer realm="mail-logs")
  DEFAULT_SECRET = "an-example-secret-that-everybody-can-read-in-the-repository"
  MINIMUM_BYTES = 32 # RFC 7518, 3.2: the key must not be shorter than the hash

  # Raised if the header has no valid token. The message is for the client.
  class Invalid < StandardError; end

  # @return [String] the secret
  # @raise [ArgumentError] if it is shorter than 32 bytes; with an empty key, everybody could sign tokens
  def self.checked(secret)
    return secret.dup.freeze if secret.bytesize >= MINIMUM_BYTES

    raise ArgumentError, "MAIL_LOGS_JWT_SECRET has #{secret.bytesize} bytes: set at least #{MINIMUM_BYTES}, " \
                         "or unset it to use the example's own"
  end

  SECRET = checked(ENV.fetch("MAIL_LOGS_JWT_SECRET", DEFAULT_SECRET))
  private_constant :SECRET

  # @param header [String, nil] the value of the Authorization header
  # @return [Hash{String => Object}] the token's claims
  # @raise [Invalid]
  def self.claims(header)
    token = header.to_s[/\ABearer +([\w.-]+)\z/i, 1] or raise Invalid, "Send the header Authorization: Bearer <token>."
    JWT.decode(token, SECRET, true, algorithm: ALGORITHM, required_claims: ["exp"], verify_expiration: true).first
  rescue JWT::ExpiredSignature
    raise Invalid, "The token has expired."
  rescue JWT::DecodeError
    raise Invalid, "The token is not valid."
  end

  # @return [String] a signed token
  def self.issue(subject:, expires_at:)
    JWT.encode({ "sub" => subject, "exp" => Integer(expires_at) }, SECRET, ALGORITHM)
  end

  # @return [String] the body of a 401: a JSON:API error document
  def self.error_document(invalid)
    JSON.generate(errors: [{ status: "401", title: "Unauthorized", detail: invalid.message }])
  end
end
