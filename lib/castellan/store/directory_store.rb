# frozen_string_literal: true

require "digest"
require "fileutils"
require "securerandom"

module Castellan
  module Store
    # Keeps bytes in files of one directory, which the processes of one machine share; up to a number of bytes, what was written first goes
    # first.
    #
    #   store = DirectoryStore.new("tmp/castellan", max_bytesize: 64 * 1024 * 1024)
    #   store.write_multi({ "a" => "1" }, ttl: 60)
    #   store.read_multi(%w[a b]) # => { "a" => "1" }
    #
    # For what is written now and then and must be seen by every worker, as profiles are. Not for documents: each access is one of the file
    # system. A file is written beside its place and then moved there, so nobody reads half of one, and says how long it is, so that what is
    # left of one after a crash is a miss. Writers take turns by a lock that ends with its process. The directory and its files are the
    # user's alone (0700, 0600), and no symbolic link in it is followed. Names of files are digests: a key can be any bytes.
    class DirectoryStore
      # "CD", the format, a zero | size of the key | when it ends, in nanoseconds since 1970, 0 for never | size of the bytes; then the key
      # and the bytes
      MAGIC = "CD\x02\x00".b.freeze
      HEAD = "a4L>Q>Q>"
      HEAD_BYTES = 24
      SUFFIX = ".entry"
      LOCK = "lock"
      TOO_OLD = 60 # seconds, for what a process that died left half written
      private_constant :MAGIC, :HEAD, :HEAD_BYTES, :SUFFIX, :LOCK, :TOO_OLD

      # @return [Integer] bytes
      attr_reader :max_bytesize

      # @param directory [#to_s] made when it is not there; for nothing else
      # @param max_bytesize [Integer] of all files; nothing larger than an eighth of it is kept, so that one entry cannot empty it
      def initialize(directory, max_bytesize: 64 * 1024 * 1024)
        @max_bytesize = Integer(max_bytesize)
        raise ConfigurationError, "max_bytesize: must be above 0, got #{max_bytesize.inspect}" unless @max_bytesize.positive?

        @directory = File.expand_path(directory.to_s).freeze
        @mutex = Mutex.new
        make
      end

      # @param keys [Array<String>]
      # @return [Hash{String => String}] what is there, binary
      def read_multi(keys)
        now = now_ns
        keys.to_h { |key| [key, read(key, now)] }.compact
      end

      # @param entries [Hash{String => String}]
      # @param ttl [Numeric, nil] seconds
      # @param if_absent [Boolean] leaves alone what is there
      # @return [Array<String>] the keys that were written
      def write_multi(entries, ttl: nil, if_absent: false)
        Store.check_ttl(ttl)
        return [] if entries.empty?

        ends_ns = ttl ? now_ns + (ttl * 1_000_000_000).to_i : 0
        locked { entries.select { |key, bytes| !(if_absent && read(key, now_ns)) && write(key, bytes, ends_ns) }.keys }
      end

      # @param keys [Array<String>]
      def delete_multi(keys)
        locked { keys.each { |key| remove(path(key)) } } if keys.any?
        nil
      end

      # @return [Integer] the counter's new value; one that was not there, or was no number, is now 1. Its lifetime stays.
      def increment(key)
        locked do
          bytes, ends_ns = entry(key, now_ns)
          value = bytes.to_i + 1
          write(key, value.to_s, ends_ns || 0)
          value
        end
      end

      # @return [Boolean] whether the value was `token` and is now gone
      def compare_and_delete(key, token)
        locked do
          next false unless read(key, now_ns) == token.b

          remove(path(key))
          true
        end
      end

      # @param feature [Symbol]
      def supports?(feature)
        feature == :lease
      end

      # @return [Integer] bytes of all files, expired ones that nobody has removed yet included
      def bytesize
        files.sum { |file| File.size?(file).to_i }
      end

      private

      def make
        FileUtils.mkdir_p(@directory, mode: 0o700)
        return unless File.stat(@directory).world_writable?

        raise ConfigurationError, "the directory #{@directory} can be written by everybody; name one that is the application's own"
      rescue SystemCallError => error
        raise ConfigurationError, "the directory #{@directory} cannot be made: #{error.message}"
      end

      def read(key, now) = entry(key, now)&.first

      # @return [Array(String, Integer), nil] bytes and when they end
      def entry(key, now)
        text = contents(path(key))
        magic, key_size, ends_ns, bytesize = text.unpack(HEAD)
        return unless magic == MAGIC && text.bytesize >= HEAD_BYTES && text.bytesize == HEAD_BYTES + key_size + bytesize
        return if text.byteslice(HEAD_BYTES, key_size) != key.b || (ends_ns.positive? && ends_ns <= now)

        [text.byteslice((HEAD_BYTES + key_size)..), ends_ns]
      rescue Errno::ENOENT, Errno::ELOOP # a symbolic link is nobody's entry
        nil
      rescue SystemCallError => error
        raise StoreError, error.message
      end

      def contents(file, *bytes)
        File.open(file, File::RDONLY | File::NOFOLLOW, binmode: true) { |opened| opened.read(*bytes).to_s }
      end

      def write(key, bytes, ends_ns)
        text = [MAGIC, key.bytesize, ends_ns, bytes.bytesize].pack(HEAD) << key.b << bytes.b
        remove(path(key))
        return false if text.bytesize > @max_bytesize / 8

        make_room(text.bytesize)
        beside = File.join(@directory, "#{SecureRandom.hex(8)}.part")
        File.open(beside, File::WRONLY | File::CREAT | File::EXCL, 0o600, binmode: true) { |file| file.write(text) }
        File.rename(beside, path(key))
        @used += text.bytesize
        true
      rescue SystemCallError
        File.delete(beside) if beside && File.exist?(beside)
        raise
      end

      # What other processes have written is known from their sizes, which are kept beside the lock; a sweep counts anew.
      def make_room(bytesize)
        sweep(bytesize) if @used + bytesize > @max_bytesize
      end

      # Takes away what has ended, and then the oldest, until a quarter is free: a full store must not be swept at each write.
      def sweep(bytesize)
        FileUtils.rm_f(named("*.part").select { |file| age(file) > TOO_OLD })
        kept = files.filter_map { |file| stat(file) }.sort_by { |_file, size, at| [at, size] }
        @used = kept.sum { |_file, size, _at| size }
        kept.each do |file, _size, _at|
          break if @used + bytesize <= @max_bytesize * 3 / 4

          remove(file)
        end
      end

      def stat(file)
        stat = File.lstat(file)
        ended?(file) ? FileUtils.rm_f(file) && nil : [file, stat.size, stat.mtime]
      rescue Errno::ENOENT
        nil
      end

      def ended?(file)
        ends_ns = contents(file, HEAD_BYTES).unpack(HEAD)[2].to_i
        ends_ns.positive? && ends_ns <= now_ns
      rescue Errno::ELOOP
        true
      end

      def remove(file)
        bytesize = File.lstat(file).size
        File.delete(file)
        @used -= bytesize
      rescue Errno::ENOENT
        nil
      end

      def age(file) = Clock.now - File.lstat(file).mtime

      def files = named("*#{SUFFIX}")

      # The directory's own name may hold what means something in a pattern.
      def named(pattern) = Dir.glob(pattern, base: @directory).map { |name| File.join(@directory, name) }

      def path(key) = File.join(@directory, "#{Digest::SHA256.hexdigest(key.b)[0, 40]}#{SUFFIX}")

      # One writer at a time, of all processes and threads. Beside the lock stands how many bytes there are.
      def locked
        @mutex.synchronize do
          File.open(File.join(@directory, LOCK), File::RDWR | File::CREAT | File::NOFOLLOW, 0o600) do |file|
            file.flock(File::LOCK_EX)
            @used = file.read.to_i
            yield.tap { note(file) }
          end
        end
      rescue SystemCallError => error
        raise StoreError, "#{@directory}: #{error.message}"
      end

      def note(file)
        file.rewind
        file.write(@used.to_s)
        file.truncate(file.pos)
      end

      def now_ns = (Clock.now.to_r * 1_000_000_000).to_i
    end
  end
end
