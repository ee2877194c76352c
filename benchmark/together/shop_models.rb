# frozen_string_literal: true

class ShopBrand < ActiveRecord::Base; end

class ShopProduct < ActiveRecord::Base
  belongs_to :brand, class_name: "ShopBrand"
  has_many :variants, -> { order(:id) }, class_name: "ShopVariant", foreign_key: :product_id
  has_many :images, class_name: "ShopImage", as: :viewable
end

class ShopVariant < ActiveRecord::Base
  belongs_to :product, class_name: "ShopProduct"
  has_many :prices, class_name: "ShopPrice", foreign_key: :variant_id
  has_many :images, class_name: "ShopImage", as: :viewable
end

class ShopPrice < ActiveRecord::Base; end
class ShopImage < ActiveRecord::Base; end
