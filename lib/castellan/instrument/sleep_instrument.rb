# frozen_string_literal: true

module Castellan
  module Instrument
    # Tells recordings that the program slept of its own accord: who asks again after that waits for something to change, which is
    # no repeated query. The clock cannot tell: on a busy machine every program stands still for a while.
    #
    #   sleep(0.1) until Job.exists?(state: "done")   # each sleep is told as Recording#slept
    #
    # Ruby has no hook for it, so `Kernel#sleep` and `Kernel.sleep` are prepended, once and for the life of the process; without a
    # recording each costs one look at a thread variable. `sleep(0)` lets others work and waits for nothing; Sequel's pool says it
    # after each statement. Who waits by other means (a queue, a condition variable) is not seen.
    module SleepInstrument
      FOREVER = Object.new.freeze
      private_constant :FOREVER

      # Prepended to Kernel.
      module Sleep
        private

        def sleep(seconds = SleepInstrument.forever)
          return super if 0.eql?(seconds)

          SleepInstrument.tell
          return super() if SleepInstrument.forever.equal?(seconds)

          super
        end
      end

      # Prepended to Kernel's singleton class.
      module Function
        include Sleep

        public :sleep
      end

      class << self
        # @return [Object] stands for no argument, without the list of arguments that `*` would make for each call
        def forever = FOREVER

        def loaded? = true
        def attached? = @attached || false

        def attach
          ::Kernel.prepend(Sleep) unless ::Kernel.include?(Sleep)
          ::Kernel.singleton_class.prepend(Function) unless ::Kernel.singleton_class.include?(Function)
          @attached = true
        end

        def detach
          @attached = false
        end

        # @return [void]
        def tell
          Recording.current&.slept if @attached
        end
      end
    end
  end
end
