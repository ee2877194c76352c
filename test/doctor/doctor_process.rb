# frozen_string_literal: true

require "json"
require "open3"
require "tmpdir"

module Castellan
  # Runs `castellan doctor` in its own process, in the folder of an application.
  #
  #   with_app({ "config.ru" => "run ->(_env) { [200, {}, ['ok']] }" }) do |app|
  #     run = app.doctor("--get", "/")
  #     run.status   # => 0
  #     run.out      # standard output; run.err is standard error
  #   end
  module DoctorProcess
    # The output and exit status of the process.
    Run = Struct.new(:out, :err, :status) do
      # @return [Array<Hash>] the lines of --json
      def rows = out.lines.map { |line| JSON.parse(line) }
    end

    # A folder with an application and its bundle.
    App = Struct.new(:dir, :gemfile, :env) do
      def doctor(*arguments, **env)
        Run.new(*run(RbConfig.ruby, "-W0", "-S", "bundle", "exec", "castellan", "doctor", *arguments, **env))
      end

      # @return [Array(String, String, Integer)]
      def run(*command, **env)
        variables = { "BUNDLE_GEMFILE" => gemfile, "RUBYOPT" => nil, **self.env, **env.transform_keys(&:to_s) }
        out, err, status = Bundler.with_unbundled_env { Open3.capture3(variables, *command, chdir: dir, stdin_data: "") }
        [out.force_encoding("UTF-8"), err.force_encoding("UTF-8"), status.exitstatus]
      end

      def write(files)
        files.each do |path, text|
          FileUtils.mkdir_p(File.dirname(File.join(dir, path)))
          File.write(File.join(dir, path), text)
        end
      end
    end

    # @param files [Hash{String => String}] texts by path
    def with_app(files, gemfile: File.join(ROOT, "Gemfile"), env: {})
      Dir.mktmpdir("castellan-doctor-test-") do |dir|
        app = App.new(File.realpath(dir), gemfile, env)
        app.write(files)
        yield app
      end
    end
  end
end
