# frozen_string_literal: true

require "digest/sha2"
require "securerandom"

module Castellan
  class Keeper
    # Identifies the application's code in every key, so that no deployment serves bytes of another.
    #
    #   Revision.new.to_s                 # => "kamal 4f2a91c", or "source 5f1c…"
    #   Revision.new("2026-11-22").to_s   # => "2026-11-22"
    #
    # Uses `config.castellan.revision`, else the file REVISION in the root, else the first of {VARIABLES} that
    # is set, else a digest of the source: code, templates and translations in the autoload paths, the `views` beside
    # them, the loaded Ruby files and I18n's files below the root, `*.ru`, `config/`, the templates in `app/views` and
    # `views`, schema.rb or structure.sql in `db/`, and Gemfile.lock. Outside Rails, the digest is computed when the
    # first resource is checked.
    class Revision
      # Environment variables of hosts and deployment tools, in order of precedence.
      VARIABLES = %w[
        HEROKU_SLUG_COMMIT HEROKU_BUILD_COMMIT KAMAL_VERSION RENDER_GIT_COMMIT RAILWAY_GIT_COMMIT_SHA FLY_IMAGE_REF K_REVISION
        CONTAINER_VERSION SOURCE_VERSION SOURCE_COMMIT GIT_REV GIT_REVISION GIT_COMMIT GIT_SHA COMMIT_SHA APP_REVISION
      ].freeze

      # A process of before a migration casts the values of a changed column by its old type, so the schema is among them.
      AROUND = ["*.ru", "config/**/*.{rb,yml}", "{app/,}views/**/*", "db/*schema.rb", "db/*structure.sql", "Gemfile.lock"].freeze
      AUTOLOADED = ["**/*.{rb,erb,haml,slim,jbuilder,yml}", "../views/**/*"].freeze # components, engines, packs
      private_constant :AROUND, :AUTOLOADED

      # @param given [String, nil] the option of `Castellan.keep`
      # @raise [ConfigurationError] if the revision is no String, or if the given one is empty
      def initialize(given = nil)
        OptionCheck.text("Castellan.keep", :revision, given, "ENV[\"GIT_COMMIT\"]") unless given.nil?
        @lock = Mutex.new
        @text = given || configured || deployed
        @text ||= source(autoloaded) if autoload_paths.any?
      end

      def to_s
        @text || @lock.synchronize { @text ||= source([]) }
      end

      # Separates this process from those of the same code that started before a migration: they cast the values of a
      # changed column by its old type.
      # @param version [String] see {PendingMigrations.last}
      def migrated_to(version)
        @text = "#{self} migration #{version}"
      end

      # Changes the revision after a code reload to one that no other process has.
      def renew
        @text = "reload #{SecureRandom.hex(8)}"
      end

      private

      def configured
        revision = Castellan.revision
        return if revision.nil? || revision == ""
        return revision if revision.is_a?(String)

        raise ConfigurationError, "Castellan.revision, in Rails config.castellan.revision, must be a String or nil, " \
                                  "got #{OptionCheck.shown(revision)}; write for example config.castellan.revision = ENV[\"GIT_COMMIT\"]"
      end

      def deployed
        file = File.join(CallSite.root, "REVISION")
        named = File.file?(file) ? File.read(file).strip : ""
        return named unless named.empty?

        VARIABLES.filter_map { |name| "#{name} #{ENV.fetch(name)}" unless ENV.fetch(name, "").strip.empty? }.first
      end

      def source(files)
        root = "#{File.realpath(CallSite.root)}/"
        loaded = [*(File.expand_path($PROGRAM_NAME) if files.empty?), *$LOADED_FEATURES, *translations] # Rails starts by bin/rails …
        loaded.select! { |path| path.start_with?(root) && CallSite.application?(path) }
        around = Dir.glob(AROUND, base: root).map { |path| root + path }
        digest = Digest::SHA256.new
        (files | loaded | around).select { |path| File.file?(path) && File.readable?(path) }.sort.each do |path|
          digest << path.delete_prefix(root) << "\0" << Digest::SHA256.file(path).digest
        end
        "source #{digest.hexdigest[0, 32]}"
      end

      def autoloaded
        autoload_paths.flat_map { |directory| Dir.glob(AUTOLOADED, base: directory).map { |path| File.expand_path(path, directory) } }
      end

      def translations
        defined?(::I18n) ? ::I18n.load_path.flatten.map { |path| File.expand_path(path.to_s) } : []
      end

      # Only paths of the application and its engines: the digest covers gems by Gemfile.lock.
      def autoload_paths
        return [] unless defined?(::ActiveSupport::Dependencies)

        ::ActiveSupport::Dependencies.autoload_paths.map(&:to_s).select { |path| CallSite.application?("#{path}/") }
      end
    end
  end
end
