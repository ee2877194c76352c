# frozen_string_literal: true

require "json"
require "tmpdir"

module Castellan
  # Runs programs in forks of a process that has loaded Rails, but not Castellan, to save time at boot.
  #
  #   Castellan::PreloadedRails.run("puts Rails.version", chdir: dir, env: { "RAILS_ENV" => "test" })   # => ["8.0.2\n", "", true]
  module PreloadedRails
    SERVER = <<~RUBY
      %w[json rails active_record/railtie action_controller/railtie rack/mock_request sqlite3].each { |name| require name }
      while (line = $stdin.gets)
        request = JSON.parse(line)
        pid = fork do
          $stdin.reopen(File::NULL)
          $stdout.reopen(request["out"], "w")
          $stderr.reopen(request["err"], "w")
          ENV.replace(request["env"])
          Dir.chdir(request["chdir"])
          eval(request["code"], TOPLEVEL_BINDING, "-e")
        end
        $stdout.puts(Process.wait2(pid).last.success?)
        $stdout.flush
      end
    RUBY
    private_constant :SERVER

    class << self
      # @param code [String]
      # @param env [Hash{String => String, nil}] more environment variables; nil deletes a variable
      # @return [Array(String, String, Boolean)] standard output, standard error, and whether the program
      #   succeeded
      def run(code, chdir:, env: {})
        Dir.mktmpdir do |directory|
          out, err = %w[out err].map { |name| File.join(directory, name) }
          server.puts(JSON.generate(code: code, chdir: chdir, env: ENV.to_h.merge(env).compact, out: out, err: err))
          succeeded = server.gets == "true\n"
          [out, err].map { |path| File.exist?(path) ? File.read(path) : "" } << succeeded
        end
      end

      private

      # The server process ends with this process, which closes its standard input.
      def server
        return @server if @server && @pid == Process.pid

        @pid = Process.pid
        library = File.expand_path("../../lib", __dir__)
        @server = IO.popen([RbConfig.ruby, "-I#{library}", "-e", SERVER], "r+")
      end
    end
  end
end
