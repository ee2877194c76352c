# frozen_string_literal: true

require "digest/sha2"
require "fileutils"

module Castellan
  module Store
    # Stores bytes in files of a directory that processes share; evicts the oldest when it is full.
    #
    #   store = DirectoryStore.new("tmp/castellan", max_bytesize: 64 * 1024 * 1024)
    #   store.write_multi({ "a" => "1" }, ttl: 60)
    #   store.read_multi(%w[a b]) # => { "a" => "1" }
    #
    # For profiles and other rare writes: each write locks the directory, and lists its files if it may be full.
    # Writes are atomic (temporary file, then rename). The directory and its files are private to the user (0700, 0600);
    # symbolic links are not followed.
    class DirectoryStore
      include ShortInspect

      MAGIC = "CD\x03\x00".b.freeze
      HEAD = "a4Q>Q>" # magic bytes, expiry (nanoseconds since 1970, 0: never), size of the value
      HEAD_BYTESIZE = 20
      COUNT = "%020d" # in the lock file: the bytes that were counted last and those written since; more than there are
      private_constant :MAGIC, :HEAD, :HEAD_BYTESIZE, :COUNT

      # @return [Integer] bytes
      attr_reader :max_bytesize

      # @param directory [String, Pathname] created if missing; use it for nothing else
      # @param max_bytesize [Integer] bytes of all files; an entry larger than an eighth of it is not stored
      # @raise [ConfigurationError] if an option is invalid, or if the directory cannot be created or is
      #   world-writable
      def initialize(directory, max_bytesize: 64 * 1024 * 1024)
        @max_bytesize = OptionCheck.whole(self.class, :max_bytesize, max_bytesize, "64 * 1024 * 1024", unit: "bytes")
        @directory = File.expand_path(path_of(directory)).freeze
        FileUtils.mkdir_p(@directory, mode: 0o700)
        return unless File.stat(@directory).world_writable?

        raise ConfigurationError, "the directory #{@directory} can be written by everybody; name one that is the application's own"
      rescue SystemCallError => error
        raise ConfigurationError, "the directory #{@directory} cannot be made: #{error.message}"
      end

      # @return [Hash{String => String}] found values, binary
      def read_multi(keys)
        keys.to_h { |key| [key, entry(key)&.first] }.compact
      end

      # @param ttl [Numeric, nil] seconds
      # @param if_absent [Boolean] keep existing values
      # @return [Array<String>] the keys that were written
      def write_multi(entries, ttl: nil, if_absent: false)
        Store.check_ttl(ttl)
        return [] if entries.empty?

        ends_ns = expiry(ttl)
        locked { |lock| entries.select { |key, bytes| !(if_absent && entry(key)) && write(lock, key, bytes, ends_ns) }.keys }
      end

      def delete_multi(keys)
        locked { keys.each { |key| FileUtils.rm_f(path(key)) } } if keys.any?
        nil
      end

      # @param ttl [Numeric, nil] seconds, of a new counter; others keep their expiry
      # @return [Integer] new value; the amount if the counter was missing or not a number
      def increment(key, amount = 1, ttl: nil)
        Store.check_ttl(ttl)
        locked do |lock|
          bytes, ends_ns = entry(key)
          (bytes.to_i + amount).tap { |value| write(lock, key, value.to_s, ends_ns || expiry(ttl)) }
        end
      end

      # @return [Boolean] whether the value was `token`, and was deleted
      def compare_and_delete(key, token)
        locked { entry(key)&.first == token.b && File.delete(path(key)) == 1 }
      end

      def supports?(feature)
        feature == :lease
      end

      # @return [Integer] bytes of all files, including expired ones
      def bytesize = files.sum { |file| File.size?(file).to_i }

      private

      def path_of(directory)
        path = directory.respond_to?(:to_path) ? directory.to_path : directory
        return path if path.is_a?(String) && !path.empty?

        raise ConfigurationError, "#{self.class} needs the path of a directory, got #{OptionCheck.shown(directory)}; write for example " \
                                  "#{self.class}.new(\"tmp/castellan\")"
      end

      # @return [Array(String, Integer), nil] bytes and expiry in nanoseconds
      def entry(key)
        text = File.open(path(key), File::RDONLY | File::NOFOLLOW, binmode: true, &:read)
        magic, ends_ns, bytesize = text.unpack(HEAD)
        return if magic != MAGIC || text.bytesize != HEAD_BYTESIZE + bytesize.to_i || (ends_ns.positive? && ends_ns <= now_ns)

        [text.byteslice(HEAD_BYTESIZE..), ends_ns]
      rescue Errno::ENOENT, Errno::ELOOP # a symbolic link
        nil
      rescue SystemCallError => error
        raise StoreError, error.message
      end

      # A reader finds the old value or the new one: only the rename replaces it.
      def write(lock, key, bytes, ends_ns)
        text = [MAGIC, ends_ns, bytes.bytesize].pack(HEAD) << bytes.b
        if text.bytesize > @max_bytesize / 8
          FileUtils.rm_f(path(key))
          return false
        end

        make_room(lock, text.bytesize)
        beside = "#{path(key)}.part"
        FileUtils.rm_f(beside) # left by a process that died
        File.open(beside, File::WRONLY | File::CREAT | File::EXCL, 0o600, binmode: true) { |file| file.write(text) }
        File.rename(beside, path(key))
        true
      ensure
        FileUtils.rm_f(beside) if beside # of a full disk
      end

      def make_room(lock, bytesize)
        used = lock.pread(lock.size, 0).to_i if lock.size.positive?
        used = sweep(bytesize) unless used&.positive? && used + bytesize <= @max_bytesize
        lock.pwrite(format(COUNT, used + bytesize), 0)
      end

      # Deletes expired entries, then the oldest, until a quarter is free.
      # @return [Integer] bytes of the files that are left
      def sweep(bytesize)
        FileUtils.rm_f(named("*.part")) # left by a process that died
        kept = files.map { |file| [File.lstat(file), file] }
        used = kept.sum { |stat, _| stat.size }
        return used if used + bytesize <= @max_bytesize

        kept.sort_by { |stat, file| [expired?(file) ? 0 : 1, stat.mtime, stat.size] }.each do |stat, file|
          break if used + bytesize <= @max_bytesize * 3 / 4 && !expired?(file)

          File.delete(file)
          used -= stat.size
        end
        used
      end

      def expired?(file)
        return true if File.symlink?(file)

        ends_ns = File.binread(file, HEAD_BYTESIZE).to_s.unpack(HEAD)[1].to_i
        ends_ns.positive? && ends_ns <= now_ns
      rescue Errno::ENOENT
        true
      end

      def files = named("*.entry")
      def named(pattern) = Dir.glob(pattern, base: @directory).map { |name| File.join(@directory, name) }
      def path(key) = File.join(@directory, "#{Digest::SHA256.hexdigest(key.b)[0, 40]}.entry")
      def expiry(ttl) = ttl ? now_ns + (ttl * 1_000_000_000).to_i : 0
      def now_ns = (Clock.now.to_r * 1_000_000_000).to_i

      # Opens the lock file per call: flock excludes other threads only with separate file descriptors. Makes the
      # directory again if it was removed (`rm -r tmp/*`).
      def locked
        FileUtils.mkdir_p(@directory, mode: 0o700)
        File.open(File.join(@directory, "lock"), File::RDWR | File::CREAT | File::NOFOLLOW, 0o600) do |file|
          file.flock(File::LOCK_EX)
          yield file
        end
      rescue SystemCallError => error
        raise StoreError, "#{@directory}: #{error.message}"
      end
    end
  end
end
