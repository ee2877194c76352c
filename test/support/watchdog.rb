# frozen_string_literal: true

# Stops the processes that a test process leaves. test/support/servers.rb starts it and writes a JSON array
# per line:
#
#   ["watch", 4711, "TERM"]               a process group was started
#   ["forget", 4711]                      it was stopped
#   ["remove", "/tmp/castellan-test-x"]   a directory to remove at the end
#
# When standard input closes, sends its signal to each process group that is still watched, then KILL.
require "fileutils"
require "json"

%w[INT TERM HUP].each { |name| Signal.trap(name, "IGNORE") }
watched = {}
directories = []
$stdin.each_line do |line|
  verb, subject, signal = JSON.parse(line)
  case verb
  when "watch" then watched[subject] = signal
  when "forget" then watched.delete(subject)
  when "remove" then directories << subject
  end
end

def signal(name, pid)
  Process.kill(name, pid)
rescue Errno::ESRCH, Errno::EPERM
  nil
end

watched.each { |pid, name| signal(name, pid) }
deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 5
sleep 0.05 while watched.keys.any? { |pid| signal(0, pid) } && Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline
watched.each_key { |pid| signal(:KILL, -pid) }
FileUtils.rm_rf(directories)
