# frozen_string_literal: true

require "json"
require "net/http"

module Castellan
  module Demo
    # Sends single requests to the server of an example, without measuring.
    #
    #   exchange = Exchange.new("http://127.0.0.1:41321", { "Authorization" => "Bearer …" })
    #   exchange.get("/posts/naive").body
    class Exchange
      def initialize(base, headers)
        @base = URI(base)
        @headers = headers
      end

      # @return [Net::HTTPResponse]
      # @raise [Error] for a status other than 2xx and 304
      def get(path, headers = {})
        send_request(Net::HTTP::Get.new(path, { "Accept-Encoding" => "identity", **@headers, **headers }))
      end

      # @param change [Hash{String => Object}] method, path, json
      def change(change, json = change.fetch("json"))
        verb = Net::HTTP.const_get(change.fetch("method").capitalize)
        request = verb.new(change.fetch("path"), { **@headers, "Content-Type" => "application/json" })
        request.body = JSON.generate(json)
        send_request(request)
      end

      # Sends requests one after the other. `{id}` in a path or document stands for the id that the first one
      # created.
      # @param writes [Array<Hash{String => Object}>] method, path, status, and json for a JSON:API document
      # @raise [Error] if a status is another
      def write(writes)
        id = nil
        writes.each do |write|
          path, body = [write.fetch("path"), JSON.generate(write["json"])].map { |text| text.gsub("{id}", id.to_s) }
          request = Net::HTTP.const_get(write.fetch("method").capitalize).new(path, @headers)
          request.body = body if write["json"]
          request["Content-Type"] = "application/vnd.api+json" if write["json"]
          response = send_request(request)
          raise Error, "#{request.method} #{path} was answered with #{response.code}" if response.code.to_i != write.fetch("status")

          id ||= JSON.parse(response.body).dig("data", "id")
        end
      end

      # The conditional headers that a client sends with a stored response (RFC 9110, section 13.1).
      # @return [Hash{String => String}]
      def conditions(response)
        { "If-None-Match" => response["etag"], "If-Modified-Since" => response["last-modified"] }.compact
      end

      private

      def send_request(request)
        response = Net::HTTP.start(@base.host, @base.port, read_timeout: 60) { |http| http.request(request) }
        return response if response.is_a?(Net::HTTPSuccess) || response.is_a?(Net::HTTPNotModified)

        raise Error, "#{request.method} #{request.path} was answered with #{response.code}: #{response.body.to_s[0, 300]}"
      end
    end
  end
end
