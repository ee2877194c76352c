# frozen_string_literal: true

require "openssl"
require "timeout"

module Castellan
  module LoadTest
    # Wraps a connected socket in TLS and verifies the system's certificates and the host name.
    #
    #   TLS.wrap(socket, host: "example.com", verify: true, timeout: 30) # => OpenSSL::SSL::SSLSocket
    #
    # Required only for https URLs, because it loads OpenSSL.
    module TLS
      module_function

      # @param timeout [Numeric] seconds for the handshake
      # @return [OpenSSL::SSL::SSLSocket] connected; closing it closes the socket
      # @raise [OpenSSL::SSL::SSLError, Timeout::Error]
      def wrap(socket, host:, verify:, timeout:)
        tls = OpenSSL::SSL::SSLSocket.new(socket, context(verify))
        tls.sync_close = true
        tls.hostname = host unless host.match?(/\A[\d.]+\z|:/)
        handshake(tls, timeout)
        tls.post_connection_check(host) if verify
        tls
      rescue StandardError
        socket.close
        raise
      end

      def context(verify)
        OpenSSL::SSL::SSLContext.new.tap do |context|
          context.set_params(verify_mode: verify ? OpenSSL::SSL::VERIFY_PEER : OpenSSL::SSL::VERIFY_NONE, verify_hostname: verify)
        end
      end

      def handshake(tls, timeout)
        deadline = Clock.monotonic_ns + (timeout * 1_000_000_000)
        until (state = tls.connect_nonblock(exception: false)) == tls
          left = (deadline - Clock.monotonic_ns) / 1e9
          ready = left.positive? && (state == :wait_readable ? tls.to_io.wait_readable(left) : tls.to_io.wait_writable(left))
          raise Timeout::Error, "the TLS handshake took longer than #{timeout} s" unless ready
        end
      end
    end
  end
end
