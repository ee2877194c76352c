# frozen_string_literal: true

module Castellan
  module Serve
    # Reads from a PostgreSQL replica, and from the primary if the replica lacks the client's last write.
    #
    #   Castellan.app {
    #     replicas
    #     resource PostResource
    #   }
    #
    # The response to a successful write has the header `Castellan-Version`: the position in the primary's
    # write-ahead log. If a client sends it with a read, the response includes the write: the replica serves
    # it once it has replayed the log to this position, until then the primary does. The primary also serves reads that
    # the replica cancels because of a recovery conflict. If the database fails between the commit and the reading of the
    # position, the response has no version. With `cookie:`, browsers send the version automatically. Uses the ORM's own
    # routing of reads. Frozen.
    class Replicas
      HEADER = "castellan-version"
      # A position in the write-ahead log (pg_lsn).
      POSITION = %r{\A\h{1,8}/\h{1,8}\z}
      COOKIE = /\A[\w!#$%&'*+.^`|~-]+\z/
      private_constant :POSITION, :COOKIE

      # @param definitions [Array<Resource::Definition>] the application's resources
      # @param cookie [String, nil] the name of a cookie that also holds the version
      # @raise [ConfigurationError] unless the resources are in one PostgreSQL database with a replica
      def initialize(definitions, cookie: nil)
        refuse("cookie: write a name of letters and digits, got #{cookie.inspect}") unless cookie.nil? || COOKIE.match?(cookie.to_s)

        @cookie = cookie&.to_s
        models = definitions.select { |definition| definition.model.is_a?(Class) }.map { |definition| Write::Models.for(definition.model) }
        @models = models.first or refuse("no resource has a model, so there is no database with a replica")
        refuse("the resources are in several databases, each of which has versions of its own") \
          unless models.all? { |other| @models.same_database?(other) }
        problem = @models.replica_problem
        refuse(problem) if problem
        freeze
      end

      # @param env [Hash] Rack's environment
      # @yieldreturn [Array] Rack's response
      # @return [Array] the response
      # @raise [BadRequest] if the header is not a version
      def call(env, &block)
        return written(&block) unless App::ALLOWED.include?(env["REQUEST_METHOD"])

        position = position_of(env)
        return read(&block) if position.nil? || @models.on_replica { @models.replayed?(position) }

        @models.on_primary(&block)
      end

      private

      # PostgreSQL cancels statements of a replica that are in the way of what it replays.
      def read(&block)
        @models.on_replica(&block)
      rescue StandardError => error
        raise unless defined?(::PG) && Write::DatabaseError.driver_error(error).is_a?(::PG::TransactionRollback)

        @models.on_primary(&block)
      end

      def written
        @models.on_primary do
          response = yield
          position = position_after_write if response.first < 300
          position ? [response[0], { **response[1], **headers(position) }, response[2]] : response
        end
      end

      # The data is written, so a database that fails now must not turn the response into a 503, after which clients
      # write again.
      # @return [String, nil]
      def position_after_write
        @models.position
      rescue StandardError => error
        raise unless Write::DatabaseError.unavailable?(error)
      end

      def headers(position)
        { HEADER => position, **(@cookie ? { "set-cookie" => "#{@cookie}=#{position}; path=/; httponly; samesite=lax" } : {}) }
      end

      # Ignores a cookie that is not a version: another application may have set it.
      def position_of(env)
        given = env["HTTP_CASTELLAN_VERSION"]
        return (given if POSITION.match?(given.b)) || refuse_header if given
        return unless @cookie

        found = Rack::Utils.parse_cookies(env)[@cookie]
        found if found.is_a?(String) && POSITION.match?(found.b)
      end

      def refuse_header
        detail = "Castellan-Version must be the value from the response to a write, such as 0/3000148"
        raise BadRequest.new(detail, header: "Castellan-Version", title: "Invalid header")
      end

      def refuse(text)
        raise ConfigurationError, "replicas: #{text}"
      end
    end
  end
end
